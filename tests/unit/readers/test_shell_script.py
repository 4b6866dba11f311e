"""Scripts in the order of a run: what they start, and what they never start."""

from __future__ import annotations

import pytest
from tests.unit.readers.shells import commands, fields, launches, started, texts

from peakgate.readers.files import FileError


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ("python a.py && python b.py; python c.py | tee log\n", ["a.py", "b.py", "c.py"]),
        ("python a.py > log.txt 2>&1 &\nwait\n", ["a.py"]),
        ("python a.py &> log\n", ["a.py"]),
        ("(cd x; python a.py)\n{ python b.py; }\n", ["a.py", "b.py"]),
        ("set -ex\nmkdir -p out\npip install -r r.txt\nmodule load cuda\nconda activate x\nexport A=1\npython a.py\n", ["a.py"]),
        ("train() { python $1.py; }\ntrain a\ntrain b\n", ["a.py", "b.py"]),
        ("function train {\n python a.py\n}\ntrain\n", ["a.py"]),
        ("train() { local n=$1; shift; python a.py $n $@; }\ntrain 3 x y\n", ["a.py 3 x y"]),
        ("for m in 7b 13b; do python a.py $m; done\n", ["a.py 7b"]),
        ("for ((i=0; i<3; i++)); do python a.py; done\n", ["a.py"]),
        ("while true; do python a.py; sleep 1; done\n", ["a.py"]),
        ('CMD="python a.py --x 1"\neval $CMD\n$CMD\n', ["a.py --x 1", "a.py --x 1"]),
        ('CMD="python a.py"\nbash -c "$CMD --y"\n', ["a.py --y"]),
        ("exec python a.py\n", ["a.py"]),
        ("echo python b.py\nexit 0\npython a.py\n", []),
        ("cat <<EOF\npython no.py\nEOF\npython a.py\n", ["a.py"]),
        (": 'python no.py\n'\npython a.py\n", ["a.py"]),
        ("read -r -d '' C <<EOF\npkg.train \\\n  --x 1\nEOF\ndeepspeed --module $C\n", ["pkg.train --x 1"]),
        ("C=$(cat <<EOF\n--x 1\n--y 2\nEOF\n)\npython a.py $C\n", ["a.py --x 1 --y 2"]),
        ("set -- 1 2 3\npython a.py $2 $#\n", ["a.py 2 3"]),
        ("python a.py --x 1\r\npython b.py\r\n", ["a.py --x 1", "b.py"]),
        ("if ! command -v x; then pip install x; fi\npython a.py\n", ["a.py"]),
        ("$LAUNCHER python a.py\n", ["a.py"]),
        ("bash -c 'python $CODE/a.py x'\n$BIN/python a.py\n", ["$CODE/a.py x", "a.py"]),
        (
            "D=<path to data>/x\npython a.py --d $D --o <your folder> --x 1 < in > out\n",
            ["a.py --d <path to data>/x --o <your folder> --x 1"],
        ),
        ("$(which python) a.py --x\n$(hostname)\n", ["a.py --x"]),
    ],
)
def test_a_script_starts(script: str, want: list[str]) -> None:
    """The commands that may train, in order."""
    assert [" ".join(words) for words in commands(script)] == want


@pytest.mark.parametrize(
    ("test", "want"),
    [
        ('[ "$S" = 7b ]', "yes"),
        ('[ "$S" == 13b ]', "no"),
        ("[[ $S == 7* ]]", "yes"),
        ('[[ $S == "7*" ]]', "no"),
        ("[[ $S != 7b || $N -gt 4 ]]", "yes"),
        ("[[ $S =~ ^[0-9]+b$ ]]", "yes"),
        ("[ $N -ge 9 ]", "no"),
        ("[ -z $U ]", "yes"),
        ('[ -n "$U" ]', "no"),
        ("[ ! -z $S -a $N -eq 8 ]", "yes"),
        ("(( N > 4 ))", "yes"),
        ("test $N -lt 4", "no"),
        ("true && false", "no"),
        ("[ -f here.txt ]", "yes"),
        ("[[ ( $S = 7b ) && $N = 8 ]]", "yes"),
    ],
)
def test_a_known_test_decides(test: str, want: str) -> None:
    """One branch runs; a variable that nothing sets is empty in a test."""
    script = f"S=7b; N=8\nif {test}; then A=yes; else A=no; fi\npython a.py $A\n"
    assert commands(script, {"here.txt": "x"}) == [["a.py", want]]


def test_a_chain_of_tests() -> None:
    """`elif` and `case` choose the same."""
    chain = "if [ $S = 1 ]; then L=1; elif [ $S = 2 ]; then L=22; else L=3; fi\n"
    case = "case $S in\n 1) L=1 ;;\n 2|3) L=22 ;;\n *) L=3 ;;\nesac\n"
    for text in (chain, case):
        assert commands(f"S=2\n{text}python a.py $L\n") == [["a.py", "22"]]


def test_a_branch_that_nobody_can_decide_leaves_both_candidates() -> None:
    """Both launches are there, in order."""
    assert commands("if grep -q x y; then\n python a.py\nelse\n python b.py\nfi\n") == [["a.py"], ["b.py"]]


def test_a_value_that_a_doubtful_branch_sets_is_told() -> None:
    """What was before holds, and a warning says where it might be otherwise."""
    (launch,) = launches("B=4\nif grep -q H100 gpus; then\n B=8\nfi\npython a.py --b $B\n")
    assert texts(launch) == ["a.py", "--b", "4"]
    assert launch.around.warnings == ["run.sh:3: a branch that cannot be decided here may give B another value"]


def test_a_default_in_a_doubtful_branch_holds() -> None:
    """A variable that only one branch sets has its value."""
    assert commands("grep -q x y && N=3\npython a.py $N\n") == [["a.py", "3"]]


def test_a_check_that_would_stop_the_script_is_passed_over() -> None:
    """A job that is submitted has what it needs."""
    assert commands('[ -z "$KEY" ] && exit 1\nif [ -z "$M" ]; then echo usage; exit 2; fi\npython a.py\n') == [["a.py"]]


def test_arguments_of_a_script() -> None:
    """Those that are given behind its name; when nobody gives them, defaults hold."""
    run = 'N=${1:-4}\nshift\npython a.py --n $N "$@"\n'
    assert texts(started("bash run.sh 8 --x 1", {"run.sh": run})) == ["a.py", "--n", "8", "--x", "1"]
    assert texts(started("./run.sh 8", {"./run.sh": "#!/bin/bash\n" + run})) == ["a.py", "--n", "8"]
    assert commands(run) == [["a.py", "--n", "4"]]


def test_options_of_a_script_in_a_loop() -> None:
    """The usual loop over arguments with `case` and `shift`."""
    run = (
        'while [[ $# -gt 0 ]]; do\n case $1 in\n  --size) SIZE=$2; shift 2 ;;\n  *) R+=" $1"; shift ;;\n esac\ndone\npython a.py $SIZE $R\n'
    )
    assert texts(started("bash run.sh --size 7b --x y", {"run.sh": run})) == ["a.py", "7b", "--x", "y"]


def test_other_scripts_are_read() -> None:
    """`source` shares variables, `bash` passes on exported ones."""
    files = {"env.sh": "N=3\nexport M=4\n", "inner.sh": "python b.py $N $M ${1}\n"}
    assert commands("source env.sh\n. ./env.sh\npython a.py $N\nbash inner.sh z\n", files) == [["a.py", "3"], ["b.py", "$N", "4", "z"]]


def test_a_script_that_is_not_here_is_told() -> None:
    """Its launch is the script itself."""
    launch = started("bash missing.sh 1")
    assert texts(launch) == ["bash", "missing.sh", "1"]
    assert launch.around.warnings == ["missing.sh is not among the files at hand: what it starts is not known"]


def test_files_that_a_script_writes_can_be_read() -> None:
    """Here-documents with variables, `echo`, `tee`; seen from the folder where the command runs."""
    script = 'B=4\nmkdir out\ncat > out/ds.json <<EOF\n{"b": $B}\nEOF\n' + "echo '{}' > e.json\n"
    script += "cat <<'EOF' | tee t.json\n$B\nEOF\ncd out\npython a.py\n"
    (launch,) = launches(script)
    assert launch.files.text("ds.json") == '{"b": 4}\n'
    assert launch.files.text("../e.json") == "{}\n"
    assert launch.files.text("../t.json") == "$B\n"


def test_relative_paths_begin_where_the_script_went() -> None:
    """Then where it was started, then beside the script."""
    (launch,) = launches("cd repo\npython a.py\n", {"repo/c.yaml": "1", "d.yaml": "2", "jobs/e.yaml": "3"}, name="jobs/run.sh")
    assert [launch.files.text(path) for path in ("c.yaml", "d.yaml", "e.yaml")] == ["1", "2", "3"]
    with pytest.raises(FileError):
        launch.files.text("f.yaml")


def test_variables_of_the_launch_are_the_exported_ones() -> None:
    """And those in front of the command."""
    (launch,) = launches("A=1\nexport B=2\nC=3 python a.py\n")
    assert {name: stated.text for name, stated in launch.environment.leaves.items()} == {"B": "2", "C": "3"}
    assert str(launch.environment.leaves["B"].place) == "run.sh:2 B"


def test_a_comment_between_continued_lines_ends_the_command() -> None:
    """As it does in a shell, which then fails to run what follows; that is told."""
    (launch,) = launches("python a.py \\\n  --x 1 \\\n  # --y 2 \\\n  --z 3\n")
    assert texts(launch) == ["a.py", "--x", "1"]
    assert launch.around.warnings == ["run.sh:4: a comment ends the command before --z, which is no part of it"]


def test_own_lines_win() -> None:
    """`#PEAKGATE` lines hold YAML values, several on a line."""
    (launch,) = launches("#PEAKGATE batch.sequence_length=4096 gpu.type=h100-80gb\n# PEAKGATE lora.targets=[q, v]\npython a.py\n")
    assert {path: stated.value for path, stated in launch.own.fields.items()} == {
        "batch.sequence_length": 4096, "gpu.type": "h100-80gb", "lora.targets": ["q", "v"]
    }  # fmt: skip
    assert str(launch.own.fields["gpu.type"].place) == "run.sh:1 #PEAKGATE"


def test_a_real_looking_job() -> None:
    """Arrays, sums, Slurm's variables, a container, a launcher behind a variable."""
    script = """#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH -N 4
#SBATCH --gpus-per-node=h100:8   # all of them
#SBATCH --ntasks-per-node=1
set -euo pipefail
source ~/.bashrc
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
WORLD_SIZE=$((SLURM_NNODES * SLURM_GPUS_ON_NODE))
DISTRIBUTED_ARGS=(
    --nproc_per_node $SLURM_GPUS_ON_NODE
    --nnodes $SLURM_NNODES
    --rdzv_endpoint $MASTER_ADDR:29500
)
ARGS="--num-layers 32 --global-batch-size $((WORLD_SIZE * 4))"
srun --container-image=nemo.sqsh torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py $ARGS
"""
    (launch,) = launches(script, name="job.sbatch")
    assert texts(launch) == ["pretrain_gpt.py", "--num-layers", "32", "--global-batch-size", "128"]
    assert launch.launchers == ("srun", "torchrun")
    assert fields(launch) == {"gpu.count": 32, "node.gpus": 8, "parallelism.world_size": 32, "gpu.type": "h100-80gb"}
    assert launch.around.warnings == []


A, B = "python train.py --x 1", "python train.py --x 2"


@pytest.mark.parametrize(
    ("script", "want"),
    [
        (f"{A} || {B}", True),
        (f"cd /work && {A} || {B}", True),
        (f"{A} && python eval.py || {B}", True),
        (f"({A}) || ({B})", True),
        (f"{A} 2>&1 | tee log || {B}", True),
        (f"! {A} && {B}", True),
        (f"if ! {A}; then {B}; fi", True),
        (f"if {A}; then echo done; else {B}; fi", True),
        (f"if {A}; then echo done; elif {B}; then echo second; fi", True),
        (f"if {A}; then echo done; elif true; then {B}; fi", True),
        (f"until {A}; do {B}; done", True),
        (f"while ! {A}; do {B}; done", True),
        (f"again() {{ {B}; }}\n{A} || again", True),
        (f"{A} || ./fallback", True),
        (f"SIZE=1 {A} || SIZE=2 {A}", True),
        (f"{A} || exit 1", False),
        (f"{A} || true", False),
        (f"{A} || echo failed", False),
        (f"{A} || sleep 60", False),
        (f"{A} || {{ echo failed; exit 3; }}", False),
        (f"{A} || {A}", False),
        (f"{A} || (sleep 60; {A})", False),
        (f"mkdir -p out || exit 1\n{A}", False),
        (f"{A} && {B}", False),
        (f"if {A}; then {B}; fi", False),
        (f"if {A}; then {B}; else exit 1; fi", False),
        (f"if ! {A}; then exit 1; fi", False),
        (f"until {A}; do sleep 5; done", False),
        (f"while ! {A}; do sleep 5; done", False),
        (f"until {A}; do {A}; done", False),
        ("for x in 1 2; do python train.py --x $x && break; done", True),
        ("for x in 1 2; do python train.py --x $x && exit 0; done; exit 1", True),
        ("for x in 1 2; do if python train.py --x $x; then break; fi; done", True),
        ("x=1; until python train.py --x $x; do x=$((x * 2)); done", True),
        ("x=1; while true; do python train.py --x $x && break; x=$((x * 2)); done", True),
        (f"{A}; if [ $? -ne 0 ]; then {B}; fi", True),
        (f"{A}; if [ $? -eq 0 ]; then echo done; else {B}; fi", True),
        (f"{A}; rc=$?; [ $rc -eq 0 ] || {B}", True),
        (f"{A}\n[[ $? != 0 ]] && {B}", True),
        (f"{A}; if [ $? -eq 0 ]; then {B}; fi", False),
        (f"{A}; [ $? -ne 0 ] || {B}", False),
        (f"{A}; if [ $? -ne 0 ]; then exit 1; fi", False),
        (f"for i in 1 2 3; do {A} && break; sleep 5; done", False),
        (f"while true; do {A} && break; sleep 5; done", False),
        ("for x in 1 2; do python train.py --x $x || exit 1; done", False),
        ("for x in 1; do python train.py --x $x && break; done", False),
        ("x=1; while python train.py --x $x; do x=$((x * 2)); done", False),
    ],
)
def test_what_runs_when_a_launch_fails_makes_it_unsure_which_one_the_job_is(script: str, *, want: bool) -> None:
    """Another launch in its place; not the same one again, nor a word that starts nothing."""
    found = launches(script)
    assert texts(found[0]) == A.split()[1:]
    assert found[0].may_not_run is want


def test_a_launch_that_no_reader_knows_leaves_the_next_one_to_be_read() -> None:
    """Both are there, the second one unsure as well."""
    found = launches(f"./first || {B}")
    assert [(texts(each)[0], each.may_not_run) for each in found] == [("./first", True), ("train.py", True)]


@pytest.mark.parametrize(
    ("script", "want"),
    [
        (f"source settings.sh\n{A} --batch ${{BATCH:-8}}", True),
        (f"source settings.sh\nBATCH=8\n{A} --batch ${{BATCH:-8}}", False),
        (f"source settings.sh\n{A}", False),
        (f"{A} --batch ${{BATCH:-8}}", False),
        (f'source settings.sh\nBATCH=8\nif [ -n "$SMALL" ]; then BATCH=1; fi\n{A} --batch $BATCH', True),
        (f"BATCH=8\nif nvidia-smi | grep A100; then BATCH=1; fi\n{A} --batch $BATCH", True),
        (f"cat > train.py <<EOF\nprint()\nEOF\n{A}", True),
        (f"sed -i s/8/1/ train.py && {A}", True),
        (f"cat > other.py <<EOF\nprint()\nEOF\n{A}", False),
        (f"sed -n 1p train.py && {A}", False),
        (f"sed -i s/a/b/ settings.json && {A}", False),
    ],
)
def test_a_word_that_may_be_another_one_makes_it_unsure_which_launch_it_is(script: str, *, want: bool) -> None:
    """A file that is not at hand, a branch, or the script itself may decide it."""
    (found,) = launches(script)
    assert found.may_not_run is want


@pytest.mark.parametrize(
    ("script", "want"),
    [
        (f"trap 'exec {B}' ERR; {A}", True),
        (f"small() {{ {B}; }}; trap small ERR; {A}", True),
        (f"trap '{B}' ERR EXIT; ./first; {A}", True),
        (f"trap '{A}' ERR; {A}", False),
        (f"trap 'kill 0' ERR; {A}", False),
        (f"trap '{B}' TERM; {A}", False),
        (f"trap '{B}' ERR; trap - ERR; {A}", False),
    ],
)
def test_what_a_trap_starts_runs_in_the_place_of_what_fails(script: str, *, want: bool) -> None:
    """As long as the trap holds; nothing that it starts is a launch of the script."""
    found = launches(script)[-1]
    assert texts(found) == A.split()[1:]
    assert found.may_not_run is want
