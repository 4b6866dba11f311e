"""`peakgate sbatch`, `srun` and `salloc` in front of a program that says what it was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contract.sources import CODE_ROOTS, ROOT

from peakgate.hooks.slurm.attached import attached_job, read_attached

REAL = """#!{python}
import json, os, sys
print(json.dumps({{"words": sys.argv[1:], "stdin": sys.stdin.read(), "environment": dict(os.environ)}}))
sys.exit(7)
"""
LAUNCH = (
    "accelerate launch sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size {batch} --max_length 4096 "
    "--gradient_checkpointing {checkpointing} --packing --dataset_name x\n"
)
SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:h100:1 --comment='mine too'\n"
FITS, TOO_LARGE = LAUNCH.format(batch=1, checkpointing="true"), LAUNCH.format(batch=128, checkpointing="false")


HEAVY = ("grpc", "google.protobuf", "yaml", "rich", "typer", "peakgate.readers.read", "peakgate.client.connect")
LOADED = """
import sys
from peakgate.hooks.slurm.submit import run
run(sys.argv[1], ["--peakgate-judge", *sys.argv[2:]])
print(*sys.modules)
"""


class Done:
    """What came of a call: what the real program was given where it was reached."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status, self.lines = done.returncode, done.stderr.splitlines()
        self.reached = done.stdout.startswith("{")
        self.real = json.loads(done.stdout) if self.reached else {}


class Host:
    """A submit host with a stand-in of Slurm's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name in ("sbatch", "srun", "salloc"):
            (folder / "bin" / name).write_text(REAL.format(python=sys.executable))
            (folder / "bin" / name).chmod(0o755)

    def call(self, *words: str, stdin: str = "", **environment: str) -> Done:
        """Calls the command there."""
        path = os.pathsep.join(str(ROOT / root) for root in CODE_ROOTS)
        variables = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(self.folder), "LANG": "C.UTF-8"}
        settings = {"PEAKGATE_SUBMIT_SETTINGS": "/dev/null", "SLURM_CONF": "/dev/null"}
        return Done(
            subprocess.run(
                [sys.executable, "-c", "from peakgate.client.main import main; main()", *words],
                cwd=self.folder,
                env=variables | settings | environment,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        )

    def script(self, text: str) -> str:
        """A script there."""
        (self.folder / "job.sh").write_text(text)
        return "job.sh"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A submit host."""
    return Host(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["sbatch", "--wrap", "hostname"],
        ["sbatch", "--gpus=1", "--wrap", "python simulate.py"],
        ["sbatch", "-n", "4", "missing.sh", "--gpus=1"],
        ["srun", "--gres=gpu:1", "nvidia-smi", "-L"],
        ["salloc", "--gpus", "2"],
        ["sbatch", "--gres=shard:2", "--wrap", TOO_LARGE],
        ["sbatch", "--help"],
        ["sbatch", "--gpus=1", "--wrap", "bash missing.sh"],
    ],
)
def test_what_is_no_training_passes_unseen(host: Host, words: list[str]) -> None:
    """No line, no variable, the same words, the same status."""
    done = host.call(*words)
    assert (done.status, done.lines) == (7, [])
    assert done.real["words"] == words[1:]
    assert [name for name in done.real["environment"] if name.startswith("PEAKGATE_") and name != "PEAKGATE_SUBMIT_SETTINGS"] == []


def test_a_script_carries_its_document_and_says_that_it_fits(host: Host) -> None:
    """The words stay as they were; what is attached is of this script."""
    done = host.call("sbatch", "-p", "a", host.script(SCRIPT + FITS), "x y")
    attached = read_attached(done.real["environment"])
    assert done.real["words"] == ["-p", "a", "job.sh", "x y"]
    assert done.lines[0].startswith("peakgate: fits: a GPU needs ")
    job = attached_job(attached, SCRIPT + FITS)
    assert job is not None
    assert (job.model.preset, job.gpu.count) == ("Qwen/Qwen2.5-0.5B", 1)


def test_a_script_on_standard_input_is_read_and_handed_on(host: Host) -> None:
    """To the byte."""
    done = host.call("sbatch", stdin=SCRIPT + FITS)
    assert done.real["stdin"] == SCRIPT + FITS
    assert attached_job(read_attached(done.real["environment"]), SCRIPT + FITS) is not None


def test_the_standard_input_of_others_is_left_alone(host: Host) -> None:
    """It is the command's."""
    assert host.call("srun", "--gpus=h100:1", *FITS.split(), stdin="its own").real["stdin"] == "its own"
    assert host.call("sbatch", host.script(SCRIPT + FITS), stdin="its own").real["stdin"] == "its own"


def test_a_job_that_does_not_fit_is_warned_of_and_submitted(host: Host) -> None:
    """In the mode that holds when nobody says another."""
    done = host.call("sbatch", host.script(SCRIPT + TOO_LARGE))
    assert done.status == 7
    assert len(done.lines) == 3
    assert done.lines[1].startswith("peakgate: cheapest change: --")
    assert done.lines[2].startswith("peakgate: submitted all the same")


def test_in_mode_enforce_it_is_refused(host: Host) -> None:
    """With sbatch's own status of a refusal; the real program is not called."""
    done = host.call("sbatch", host.script(SCRIPT + TOO_LARGE), PEAKGATE_MODE="enforce")
    assert (done.status, done.reached, len(done.lines)) == (1, False, 3)
    assert done.lines[2].startswith("peakgate: refused")


def test_an_operators_word_is_handed_to_the_gate(host: Host) -> None:
    """Which alone knows the words; so the job is not refused here, and the script's word counts as one on the command line does."""
    done = host.call("sbatch", "--peakgate-override=ticket-9", host.script(SCRIPT + TOO_LARGE), PEAKGATE_MODE="enforce")
    assert done.real["words"] == ["job.sh"]
    assert read_attached(done.real["environment"]).override == "ticket-9"
    done = host.call("sbatch", host.script(SCRIPT + "#PEAKGATE override=ticket-8 try=once more\n" + TOO_LARGE), PEAKGATE_MODE="enforce")
    attached = read_attached(done.real["environment"])
    assert (attached.override, attached.try_reason) == ("ticket-8", "once more")


def test_in_mode_shadow_nothing_is_said(host: Host) -> None:
    """The document is attached all the same."""
    done = host.call("sbatch", host.script(SCRIPT + TOO_LARGE), PEAKGATE_MODE="shadow")
    assert (done.lines, "PEAKGATE_JOB" in done.real["environment"]) == ([], True)


def test_srun_and_salloc_carry_words_in_their_comment(host: Host) -> None:
    """Behind the user's own, in front of the command."""
    done = host.call("srun", "--gpus=h100:1", "--comment", "mine", "--", *FITS.split())
    before, comment, dashes, *command = done.real["words"][-len(FITS.split()) - 3 :]
    assert (before, dashes, command) == ("mine", "--", FITS.split())
    assert comment.startswith("--comment=mine; peakgate: digest=")
    stated = "peakgate: model.preset=llama-3.1-8b batch.micro_batch_size=1"
    done = host.call("salloc", "--gpus=h100:1", f"--comment={stated}")
    assert done.real["words"][-1].startswith("--comment=peakgate: digest=")
    assert "model.preset=llama-3.1-8b" in done.real["words"][-1]


@pytest.mark.parametrize("words", [["--export=NONE"], ["--export=PATH,A=1"]])
def test_export_loses_nothing(host: Host, words: list[str]) -> None:
    """Slurm propagates SLURM_* in every case (sbatch(1))."""
    done = host.call("sbatch", *words, host.script(SCRIPT + FITS))
    mine = [name for name in done.real["environment"] if "PEAKGATE" in name and "SUBMIT" not in name]
    assert sorted(mine) == ["SLURM_PEAKGATE_ATTACHED", "SLURM_PEAKGATE_JOB"]


def test_an_environment_from_a_file_is_made_up_for_by_the_comment(host: Host) -> None:
    """There nothing else of the user's environment is left; the script's own comment is kept."""
    done = host.call("sbatch", "--export-file=/dev/null", host.script(SCRIPT + FITS))
    assert done.real["words"][1].startswith("--comment=mine too; peakgate: digest=")


def test_what_an_earlier_job_left_behind_is_not_passed_on(host: Host) -> None:
    """A job that submits another one has its own prediction in the environment."""
    inherited = {"PEAKGATE_ATTACHED": "id=a", "PEAKGATE_PREDICTION": "predictions/a", "PEAKGATE_JOB": "x"}
    assert "PEAKGATE_PREDICTION" not in host.call("sbatch", "--wrap", "hostname", **inherited).real["environment"]
    assert host.call("sbatch", "--wrap", "hostname", PEAKGATE_PREDICTION="predictions/a").real["environment"]["PEAKGATE_PREDICTION"]


def test_a_step_of_a_job_is_no_submission(host: Host) -> None:
    """An srun inside an allocation asks for nothing new."""
    done = host.call("srun", "--gpus=h100:1", *TOO_LARGE.split(), SLURM_JOB_ID="5")
    assert (done.status, done.lines) == (7, [])


def test_a_heterogeneous_job_is_judged_by_the_component_with_gpus(host: Host) -> None:
    """And each component's words stay."""
    done = host.call("sbatch", "-n1", ":", "--gres=gpu:h100:1", host.script("#!/bin/bash\n" + TOO_LARGE), PEAKGATE_MODE="enforce")
    assert (done.status, done.reached) == (1, False)


def test_variables_that_a_script_inherits_are_known(host: Host) -> None:
    """`BATCH=128 sbatch job.sh` is another job than `BATCH=1 sbatch job.sh`."""
    script = host.script(SCRIPT + LAUNCH.format(batch="$BATCH", checkpointing="false"))
    assert host.call("sbatch", script, BATCH="128", PEAKGATE_MODE="enforce").status == 1
    assert "cannot be judged" in host.call("sbatch", script, PEAKGATE_MODE="enforce").lines[0]


def test_the_folder_of_the_job_is_where_its_files_lie(host: Host) -> None:
    """--chdir is where the job begins."""
    (host.folder / "work").mkdir()
    (host.folder / "work" / "sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 128\nmax_length: 4096\n"
        "packing: true\ngradient_checkpointing: false\ndataset_name: x\n"
    )
    done = host.call("sbatch", "--chdir=work", host.script(SCRIPT + "accelerate launch sft.py --config sft.yaml\n"))
    assert done.lines[2].startswith("peakgate: submitted all the same")


def test_a_service_that_is_away_is_said(host: Host) -> None:
    """The job is judged on this host then."""
    done = host.call("sbatch", host.script(SCRIPT + FITS), PEAKGATE_SERVER="127.0.0.1:1")
    assert done.lines[-1].endswith("(predicted on this host, the service did not answer)")


def test_settings_that_cannot_be_used_are_said_and_hold_nobody_up(host: Host) -> None:
    """The defaults hold."""
    (host.folder / "submit.yaml").write_text("moed: enforce\n")
    done = host.call("sbatch", host.script(SCRIPT + FITS), PEAKGATE_SUBMIT_SETTINGS=str(host.folder / "submit.yaml"))
    assert done.status == 7
    assert "'moed' is no setting" in done.lines[0]


def test_where_a_gate_decides_only_what_it_cannot_say_is_said(host: Host) -> None:
    """A verdict is the gate's to tell, so that it is attached as untold; what is refused here, and what could not be read, is said here."""
    (host.folder / "submit.yaml").write_text("mode: warn\ngate: true\n")
    settings = {"PEAKGATE_SUBMIT_SETTINGS": str(host.folder / "submit.yaml")}
    for launch in (FITS, TOO_LARGE):
        done = host.call("sbatch", host.script(SCRIPT + launch), **settings)
        assert (done.status, done.lines) == (7, [])
        assert "told=1" not in done.real["environment"]["PEAKGATE_ATTACHED"].split()
        assert "PEAKGATE_JOB" in done.real["environment"]
    done = host.call("sbatch", host.script(SCRIPT + TOO_LARGE), **settings, PEAKGATE_MODE="enforce")
    assert (done.reached, len(done.lines)) == (False, 3)
    done = host.call("sbatch", host.script(SCRIPT + "#PEAKGATE batch.micro_batch_size=none\n" + FITS), **settings)
    assert (done.status, done.lines[0].startswith("peakgate: not checked: ")) == (7, True)


def test_who_names_no_type_is_told_of_the_card_that_is_too_small(host: Host) -> None:
    """By the table of cards of the submit host: not refused for a card that it may not get, whatever the mode."""
    (host.folder / "cards.yaml").write_text("cards:\n- {type: tiny, memory_bytes: 2000000000}\n- {type: big, gpu: h100-80gb}\n")
    (host.folder / "submit.yaml").write_text(f"mode: enforce\ncards: {host.folder / 'cards.yaml'}\n")
    settings = {"PEAKGATE_SUBMIT_SETTINGS": str(host.folder / "submit.yaml")}
    done = host.call("sbatch", "--gres=gpu:1", host.script(f"#!/bin/bash\n{FITS}"), **settings)
    assert (done.status, len(done.lines)) == (7, 1)
    assert done.lines[0].startswith("peakgate: fits h100-80gb, not tiny, which it may get as well: a GPU needs ")
    assert "; ask for gpu:big" in done.lines[0]
    done = host.call("sbatch", "--gres=gpu:tiny:1", host.script(f"#!/bin/bash\n{FITS}"), **settings)
    assert (done.status, done.reached, len(done.lines)) == (1, False, 3)


def test_a_table_of_cards_that_is_none_is_told_and_holds_nobody_up(host: Host) -> None:
    """In words for whoever wrote it."""
    (host.folder / "cards.yaml").write_text("untyped: largest\n")
    (host.folder / "submit.yaml").write_text(f"mode: enforce\ncards: {host.folder / 'cards.yaml'}\n")
    settings = {"PEAKGATE_SUBMIT_SETTINGS": str(host.folder / "submit.yaml")}
    done = host.call("sbatch", "--gres=gpu:1", host.script(f"#!/bin/bash\n{FITS}"), **settings)
    assert (done.status, len(done.lines)) == (7, 1)
    assert done.lines[0].startswith(f"peakgate: not checked: {str(host.folder)[:40]}")


def test_an_own_option_that_is_none_is_an_error(host: Host) -> None:
    """A mistyped wish must not be taken for none."""
    done = host.call("sbatch", "--peakgate-tyr=x", "--wrap", "hostname")
    assert (done.status, done.reached) == (2, False)


def test_scripts_that_call_this_command_are_passed_over(host: Host) -> None:
    """A site may put a wrapper of the same name into PATH."""
    wrapper = host.folder / "wrap"
    wrapper.mkdir()
    (wrapper / "sbatch").write_text('#!/bin/sh\nexec peakgate sbatch "$@"\n')
    (wrapper / "sbatch").chmod(0o755)
    done = host.call("sbatch", "--wrap", "hostname", PATH=f"{wrapper}:{host.folder / 'bin'}:/usr/bin:/bin")
    assert done.real["words"] == ["--wrap", "hostname"]
    assert host.call("sbatch", "--wrap", "hostname", PATH=str(wrapper)).status == 127
    assert host.call("sbatch", "--help", PATH=str(wrapper)).status == 0


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "2>&- <&-", "2>/dev/full"])
def test_closed_and_full_streams_hold_no_job_up(host: Host, closed: str) -> None:
    """As a cron job or a portal may have them."""
    script = host.script(SCRIPT + FITS)
    path = os.pathsep.join(str(ROOT / root) for root in CODE_ROOTS)
    (host.folder / "bin" / "sbatch").write_text("#!/bin/sh\necho submitted $1\n")
    call = f"{sys.executable} -c 'from peakgate.client.main import main; main()' sbatch {script} {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", call],
        cwd=host.folder,
        env={"PATH": f"{host.folder / 'bin'}:/usr/bin:/bin", "PYTHONPATH": path, "PEAKGATE_SUBMIT_SETTINGS": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "submitted job.sh\n", done.stderr


def test_judging_alone_submits_nothing(host: Host) -> None:
    """As a plugin of the submit commands calls it: the comment to set on standard output, the verdict as the status."""
    done = host.call("sbatch", "--peakgate-judge", host.script(SCRIPT + TOO_LARGE), PEAKGATE_MODE="enforce")
    assert (done.status, done.reached, len(done.lines)) == (1, False, 3)


@pytest.mark.parametrize(
    "words", [["--wrap", "hostname"], ["--gpus=1", "--wrap", "python simulate.py"], ["--gpus=1", "--wrap", "nvidia-smi"]]
)
def test_what_is_no_training_loads_nothing_of_weight(words: list[str]) -> None:
    """Readers, YAML, protobuf and gRPC take half a second together, which most submissions must not wait for."""
    path = os.pathsep.join(str(ROOT / root) for root in CODE_ROOTS)
    done = subprocess.run(
        [sys.executable, "-S", "-c", LOADED, "sbatch", *words], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert set(HEAVY).isdisjoint(done.stdout.split())


@pytest.mark.parametrize("own", [[], ["--peakgate-judge"]])
def test_a_script_that_comes_through_a_pipe_is_left_to_sbatch(host: Host, own: list[str]) -> None:
    """`sbatch <(…)`: what is read of it here, the real program, or the filter's own, would not get."""
    os.mkfifo(host.folder / "pipe")
    reading = os.open(host.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(host.folder / "pipe", os.O_WRONLY)
    os.write(writing, (SCRIPT + FITS).encode())
    host.call("sbatch", *own, "--gpus=h100:1", "--comment", "peakgate: batch.micro_batch_size=2", "pipe")
    left = os.read(reading, 1 << 16).decode()
    os.close(reading)
    os.close(writing)
    assert left == SCRIPT + FITS


def test_what_is_attached_says_where_it_was_submitted_and_what_was_told(host: Host) -> None:
    """The hook tells inherited variables by the one, the gate does not repeat a verdict by the other."""
    script = host.script(SCRIPT + FITS)
    words = host.call("sbatch", script, SLURM_JOB_ID="17").real["environment"]["PEAKGATE_ATTACHED"].split()
    assert {"in=17", "told=1"} <= set(words)
    words = host.call("sbatch", "--peakgate-mode", "shadow", script, SLURM_JOB_ID="1 7").real["environment"]["PEAKGATE_ATTACHED"].split()
    assert not any(word.startswith(("in=", "told=")) for word in words)


def test_a_request_that_stands_in_a_variable_is_a_request(host: Host) -> None:
    """sbatch takes SBATCH_GPUS for --gpus, which wins over it."""
    script = host.script("#!/bin/bash\n" + FITS)
    assert "of h100-80gb" in host.call("sbatch", script, SBATCH_GPUS="h100:1").lines[0]
    assert "of a100-80gb" in host.call("sbatch", "--gpus=a100-80:1", script, SBATCH_GPUS="h100:1").lines[0]


def test_a_step_keeps_the_prediction_of_its_job_and_a_job_in_a_job_does_not(host: Host) -> None:
    """`srun` in a script runs the training that was judged; `sbatch` there submits another, which has none without a service."""
    inherited = {"SLURM_JOB_ID": "17", "PEAKGATE_PREDICTION": "predictions/outer", "PEAKGATE_ATTACHED": "id=outer"}
    for given in (inherited, {name: text for name, text in inherited.items() if name != "PEAKGATE_ATTACHED"}):
        step = host.call("srun", *FITS.split(), **given).real["environment"]
        assert step["PEAKGATE_PREDICTION"] == "predictions/outer"
        assert "PEAKGATE_PREDICTION" not in host.call("sbatch", host.script(SCRIPT + FITS), **given).real["environment"]
        assert "PEAKGATE_PREDICTION" not in host.call("sbatch", "--gpus=1", "--wrap", "hostname", **given).real["environment"]
