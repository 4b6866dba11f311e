"""What a script reads into variables, hands on to another shell, and takes for granted of arguments that nobody gave."""

from __future__ import annotations

import pytest
from tests.unit.readers.shells import commands, fields, launches


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ('IFS="," read -r A B C <<< "2,4,8"', ["2", "4", "8"]),
        ('read -r A B C <<< "2 4 8"', ["2", "4", "8"]),
        ('IFS=:, read A B C <<< "2:4,8"', ["2", "4", "8"]),
        ('IFS=, read A B <<< "2,4,8"\nC=1', ["2", "4,8", "1"]),
        ('IFS=, read A B C <<< "2,4"', ["2", "4"]),
        ('IFS=,\nread A B C <<< "2,4,8"', ["2", "4", "8"]),
        ('IFS=, read -ra L <<< "2,4,8"\nA=${L[0]} B=${L[1]} C=${L[2]}', ["2", "4", "8"]),
        ('read -p ask A <<< "2"\nB=4 C=8', ["2", "4", "8"]),
        ("read -r A B C <<< $UNKNOWN", ["$A", "$B", "$C"]),
    ],
)
def test_read_takes_a_text_apart(line: str, want: list[str]) -> None:
    """By IFS; the last name has what is left, and what is not known stays so."""
    assert commands(f"{line}\npython a.py $A $B $C\n") == [["a.py", *want]]


def test_a_sweep_takes_the_first_of_its_lines() -> None:
    """As recipes list degrees: one text for each run."""
    script = 'S=("4,2" "2,4")\nfor s in "${S[@]}"; do IFS=, read -r T P <<< "$s"; python a.py --t $T --p $P; done\n'
    assert commands(script) == [["a.py", "--t", "4", "--p", "2"]]


def test_a_command_that_is_known_in_part_reaches_the_shell_it_is_exported_to() -> None:
    """The host's name is the job's; all else of the launcher and of the command is known."""
    script = (
        'HOST=$(scontrol show hostnames | head -n 1)\nexport L="env X=$HOST"\nexport C=" \\\n  a.py --x 1 \\\n  --h $HOST"\n'
        "srun bash -c '$L python $C --y $SLURM_PROCID'\n"
    )
    (found,) = commands(script)
    assert found[:3] == ["a.py", "--x", "1"]
    assert found[-2:] == ["--y", "$SLURM_PROCID"]


def test_what_is_not_exported_does_not_reach_another_shell() -> None:
    """As in a shell."""
    assert commands("C='a.py --x 1'\nbash -c 'python b.py $C'\n") == [["b.py", "$C"]]


@pytest.mark.parametrize("test", ['[ "$S" == "" ]', "[ -z $S ]", '[[ -z "$S" ]]', '[ "" = "$S" ]'])
def test_an_argument_that_nobody_gave_is_empty_where_a_script_asks(test: str) -> None:
    """As `${2:-3}` takes its default."""
    assert commands(f"S=$2\nif {test}; then\n  S=3\nfi\npython a.py $S\n") == [["a.py", "3"]]


def test_an_argument_that_is_compared_with_a_word_stays_open() -> None:
    """Either of the two may be what is given."""
    (found,) = commands('if [ "$1" == "large" ]; then B=1; else B=2; fi\npython a.py --b $B\n')
    assert found == ["a.py", "--b", "2"]


def test_an_argument_that_is_given_is_not_empty() -> None:
    """In a script that another one starts."""
    files = {"in.sh": 'S=$1\nif [ "$S" == "" ]; then S=3; fi\npython a.py $S\n'}
    assert commands("bash in.sh 2\n", files) == [["a.py", "2"]]
    assert commands("bash in.sh\n", files) == [["a.py", "3"]]


@pytest.mark.parametrize(
    ("command", "want"),
    [
        ("python submit.py --gpus 8 -- torchrun --nproc_per_node 8 train.py --x 1", [["train.py", "--x", "1"]]),
        ("gantry run --gpus 8 -- python train.py", [["train.py"]]),
        (r"python submit.py -- source env.sh \&\& python a.py \&\&python b.py --x", [["a.py"], ["b.py", "--x"]]),
        ("python train.py --x -- --y", [["train.py", "--x", "--", "--y"]]),
        ("python train.py -- word", [["train.py", "--", "word"]]),
        ("python train.py --", [["train.py", "--"]]),
        ("ft_launcher --ft-param-rank_heartbeat_timeout 30 --nproc-per-node 4 train.py --x", [["train.py", "--x"]]),
    ],
)
def test_a_starter_of_ones_own_is_taken_off(command: str, want: list[list[str]]) -> None:
    """Where a launcher, Python or a shell stands behind its dashes; a script keeps dashes of its own."""
    assert commands(f"{command}\n") == want


def test_starters_without_end_are_left() -> None:
    """A few hands are as deep as a job goes."""
    (found,) = commands("python a.py -- " * 3000 + "python b.py\n")
    assert found[0] == "a.py"


@pytest.mark.parametrize(
    ("start", "want"),
    [
        ("", ["a.py", "--x"]),
        ("declare -a MORE=()", ["a.py", "--x"]),
        ("if [ -n $IMAGE ]; then MORE=(--image $IMAGE); fi", ["a.py", "--x"]),
        ("MORE=(--y 1)", ["a.py", "--y", "1", "--x"]),
        ("source elsewhere.sh", ["a.py", "${MORE[@]}", "--x"]),
    ],
)
def test_an_array_that_nothing_sets_has_no_words(start: str, want: list[str]) -> None:
    """No environment holds one; a file that is not at hand may."""
    assert commands(f'{start}\npython a.py "${{MORE[@]}}" --x\n') == [want]


def test_a_launcher_behind_options_that_nothing_sets() -> None:
    """`srun "${OPTIONS[@]}" torchrun …`, whatever the options are called."""
    (found,) = launches('srun -l "${ARGS[@]}" torchrun --nproc_per_node 4 a.py\n')
    assert fields(found)["parallelism.world_size"] == 4
