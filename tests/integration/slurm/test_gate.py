"""From a normal user's prompt through Slurm's controller and the real hook to the real gate and service, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.programs import Program
from tests.integration.slurm.cluster import Done, Slurm, job_number
from tests.integration.slurm.gate import RunningGate, running_gate, use_hook
from tests.integration.slurm.jobs import BETWEEN, FITS, NO_TRAINING, TOO_LARGE
from tests.integration.slurm.submit_host import FITS as HOST_FITS
from tests.integration.slurm.submit_host import TOO_LARGE as HOST_TOO_LARGE
from tests.integration.slurm.submit_host import submit

ENFORCE = "mode: enforce\n"
PATIENT = ("--deadline", "5")
"""What is decided is tested here, on a machine that may be busy; how fast, in the bench."""


@pytest.fixture(scope="module")
def module_gate(service: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGate]:
    """A gate that asks the service."""
    with running_gate(tmp_path_factory.mktemp("gate"), ENFORCE, "--server", service.target, *PATIENT) as running:
        yield running


@pytest.fixture
def gate(slurm: Slurm, module_gate: RunningGate) -> RunningGate:
    """The same, asked by the controller, with all jobs enforced."""
    module_gate.rules(ENFORCE)
    use_hook(slurm, module_gate.socket, budget_seconds="6")
    return module_gate


def stamp(slurm: Slurm, done: Done) -> str:
    """What the job carries."""
    return slurm.job(job_number(done)).get("AdminComment", "").strip()


def is_refused(done: Done) -> bool:
    """With the reason at the prompt."""
    return done.returncode != 0 and "too few" in done.stderr and "Invalid generic resource" in done.stderr


def test_a_job_that_fits_is_stamped_and_knows_its_prediction(slurm: Slurm, gate: RunningGate) -> None:
    """AdminComment, the job's environment and the journal name the same prediction; the user reads one line."""
    done = slurm.sbatch(f"{FITS}\necho id=$PEAKGATE_PREDICTION", "--gres=gpu:h100:2", "--output=fits.out")
    assert done.returncode == 0
    assert "peakgate: fits: a GPU needs" in done.stderr
    identity = stamp(slurm, done).removeprefix("peakgate=")
    slurm.wait(job_number(done))
    assert f"id=predictions/{identity}\n" in (slurm.home() / "fits.out").read_text()
    last = gate.journal()[-1]
    assert (last["prediction"], last["verdict"], last["outcome"], last["by"]) == (identity, "ADMIT", "admitted", "service")
    assert (last["gpus"], last["gpu_types"], last["card"], last["partition"]) == (2, ["h100"], "h100-80gb", "h100")


def test_a_job_that_another_one_submits_has_not_its_prediction(slurm: Slurm, gate: RunningGate) -> None:
    """Though it inherits the variable, and nothing in it is judged."""
    inherited = {"SLURM_JOB_ID": "1", "PEAKGATE_PREDICTION": "predictions/outer", "PEAKGATE_ATTACHED": "id=outer"}
    done = slurm.sbatch("echo id=[$PEAKGATE_PREDICTION]\n", "--gres=gpu:h100:1", "--output=inner.out", env=inherited)
    slurm.wait(job_number(done))
    assert (slurm.home() / "inner.out").read_text() == "id=[]\n"


@pytest.mark.parametrize(
    "flags",
    [
        ["--gres=gpu:h100:2"],
        ["--gpus=h100:2"],
        ["--gpus-per-node=h100:2", "--nodes=2"],
        ["--gpus-per-task=h100:1", "--ntasks=2"],
        ["--gpus-per-socket=h100:1", "--sockets-per-node=1"],
        ["--gres=gpu:h100:1", "--array=0-3%2"],
        ["--gres=gpu:h100:1", "--test-only"],
        ["--gres=gpu:h100:1", "--export=NONE"],
    ],
    ids=" ".join,
)
def test_a_job_that_is_too_large_is_refused_at_the_prompt(slurm: Slurm, gate: RunningGate, flags: list[str]) -> None:
    """However the GPUs are asked for; the same request of a job that fits is admitted."""
    assert is_refused(slurm.sbatch(TOO_LARGE, *flags))
    assert slurm.sbatch(FITS, *flags).returncode == 0


def test_an_array_is_one_prediction(slurm: Slurm, gate: RunningGate) -> None:
    """Every task carries it."""
    done = slurm.sbatch(FITS, "--gres=gpu:h100:1", "--array=0-1", "--hold")
    shown = slurm.run("scontrol", "show", "job", "-o", str(job_number(done)), user="root").stdout
    assert "AdminComment=peakgate=" in shown
    assert "unchecked" not in shown


def test_the_card_of_the_request_decides(slurm: Slurm, gate: RunningGate) -> None:
    """The same script fits one card and not the other."""
    assert slurm.sbatch(BETWEEN, "--gres=gpu:a100-80:1", "--partition=any").returncode == 0
    assert is_refused(slurm.sbatch(BETWEEN, "--gres=gpu:a100-40:1", "--partition=any"))


def test_a_component_of_a_heterogeneous_job_is_judged_by_the_first_ones_script(slurm: Slurm, gate: RunningGate) -> None:
    """One that is too large refuses the whole job, also where the first one asks for no GPU."""
    script = slurm.script(BETWEEN)
    both = ["--gres=gpu:h100:1", ":", "--partition=any"]
    assert slurm.run("sbatch", *both, "--gres=gpu:a100-80:1", script).returncode == 0
    refused = slurm.run("sbatch", *both, "--gres=gpu:a100-40:1", script)
    assert is_refused(refused)
    assert "1: peakgate:" in refused.stderr
    behind_a_cpu = ["--ntasks=1", ":", "--gres=gpu:h100:1"]
    assert slurm.run("sbatch", *behind_a_cpu, slurm.script(FITS)).returncode == 0
    assert is_refused(slurm.run("sbatch", *behind_a_cpu, slurm.script(TOO_LARGE)))


STATED = "peakgate: model.preset=llama-3.1-8b batch.micro_batch_size=64 batch.sequence_length=8192"


@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_interactive_jobs_are_judged_by_their_comment(slurm: Slurm, gate: RunningGate, program: str) -> None:
    """The controller sees neither a script nor a command of theirs."""
    done = slurm.run(program, "--gres=gpu:h100:1", f"--comment={STATED}", "hostname")
    assert is_refused(done)
    smaller = STATED.replace("=64", "=1").replace("8b", "8b lora.rank=8 lora.method=lora checkpointing.mode=full")
    done = slurm.run(program, "--gres=gpu:h100:1", f"--comment={smaller}", "hostname")
    assert (done.returncode, "peakgate: fits" in done.stderr) == (0, True)


@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_interactive_jobs_without_a_training_hear_nothing(slurm: Slurm, gate: RunningGate, program: str) -> None:
    """A shell, a notebook, a tool."""
    done = slurm.run(program, "--gres=gpu:h100:1", "hostname")
    assert (done.returncode, "peakgate" in done.stderr) == (0, False)


def test_jobs_without_a_gpu_or_a_training_are_left_alone(slurm: Slurm, gate: RunningGate) -> None:
    """No word, and no stamp; without a GPU not even a call."""
    before = len(gate.journal())
    without_gpu, without_training = slurm.sbatch(TOO_LARGE), slurm.sbatch(NO_TRAINING, "--gres=gpu:h100:1")
    assert [stamp(slurm, done) for done in (without_gpu, without_training)] == ["", ""]
    assert [done.stderr for done in (without_gpu, without_training)] == ["", ""]
    assert len(gate.journal(before + 1)) == before + 1


def test_a_part_of_a_card_is_not_held_against_the_whole(slurm: Slurm, gate: RunningGate) -> None:
    """Shards of a card that others use as well."""
    done = slurm.sbatch(TOO_LARGE, "--gres=shard:1", "--partition=a100")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("mode", "want_said"), [("shadow", False), ("warn", True), ("off", False)])
def test_milder_modes_admit(slurm: Slurm, gate: RunningGate, mode: str, want_said: bool) -> None:
    """shadow without a word, warn with the message; both stamp the prediction. off does nothing."""
    gate.rules(f"mode: {mode}\n")
    done = slurm.sbatch(TOO_LARGE, "--gres=gpu:h100:1")
    assert (done.returncode, "too few" in done.stderr) == (0, want_said)
    assert bool(stamp(slurm, done)) == (mode != "off")


def test_rules_by_partition_and_a_broken_file(slurm: Slurm, gate: RunningGate) -> None:
    """A file with a fault leaves the earlier rules in force, and says which fault it is."""
    gate.rules("mode: off\nrules:\n- {partition: h100, mode: enforce}\n")
    assert slurm.sbatch(TOO_LARGE, "--gres=gpu:a100-80:1", "--partition=a100").returncode == 0
    assert is_refused(slurm.sbatch(TOO_LARGE, "--gres=gpu:h100:1"))
    gate.rules("mode: loud\n")
    assert is_refused(slurm.sbatch(TOO_LARGE, "--gres=gpu:h100:1"))
    assert "gate.yaml: mode: Input should be" in gate.log
    assert "peakgate_gate_files_stale 1.0" in gate.metrics()


@pytest.mark.parametrize(("gate_line", "want_lines"), [("gate: true\n", 3), ("", 4)])
def test_a_submit_host_that_warns_leaves_the_verdict_to_the_gate(
    slurm: Slurm, gate: RunningGate, service: Program, gate_line: str, want_lines: int
) -> None:
    """Three lines at the prompt when its file says that a gate decides, and the job is refused; one line for a job that fits."""
    settings = slurm.write("submit-beside-a-gate.yaml", f"server: {service.target}\ndeadline_seconds: 30\n{gate_line}")
    host = {"PEAKGATE_SUBMIT_SETTINGS": str(settings)}
    done = submit(slurm, "sbatch", slurm.script(f"#SBATCH --gres=gpu:h100:1\n{HOST_TOO_LARGE}"), env=host)
    assert is_refused(done)
    assert (done.stderr.count("peakgate: "), done.stderr.count("peakgate: refused")) == (want_lines, 1)
    assert "peakgate explain" in done.stderr
    assert "cheapest change: --" in done.stderr
    done = submit(slurm, "sbatch", slurm.script(f"#SBATCH --gres=gpu:h100:1\n{HOST_FITS}"), env=host)
    assert (done.returncode, done.stderr.count("peakgate: ")) == (0, 1)


def test_an_operators_word_admits_and_is_written_down(slurm: Slurm, gate: RunningGate) -> None:
    """With its reason; a wrong word does not."""
    gate.rules("mode: enforce\noverrides: [{name: night shift, word: sesame}]\n")
    assert is_refused(slurm.sbatch(f"{TOO_LARGE}#PEAKGATE override=barley:please\n", "--gres=gpu:h100:1"))
    done = slurm.sbatch(f"{TOO_LARGE}#PEAKGATE override=sesame:ticket 7\n", "--gres=gpu:h100:1")
    assert done.returncode == 0
    assert "admitted by override night shift" in done.stderr
    last = gate.journal()[-1]
    assert (last["admitted_by"], last["wish"], last["outcome"]) == ("override night shift", "ticket 7", "would_refuse")


def test_a_change_of_a_job_is_judged_by_its_prediction(slurm: Slurm, gate: RunningGate) -> None:
    """Its owner cannot move it to a card that is too small; an operator can."""
    number = job_number(slurm.sbatch(BETWEEN, "--gres=gpu:h100:1", "--partition=any", "--hold"))
    change = ("scontrol", "update", f"jobid={number}", "gres=gpu:a100-40:1")
    refused = slurm.run(*change)
    assert refused.returncode != 0
    assert slurm.job(number)["TresPerNode"] == "gres:gpu:h100:1"
    assert slurm.run("scontrol", "update", f"jobid={number}", "timelimit=5").returncode == 0
    assert slurm.run(*change, user="root").returncode == 0
    assert [each["admitted_by"] for each in gate.journal()[-2:]] == ["", "operator"]


def test_a_script_whose_config_cannot_be_seen_is_not_refused(slurm: Slurm, gate: RunningGate, tmp_path: Path) -> None:
    """The controller opens no file of a user's, whoever may read it."""
    config = slurm.home() / "ds.json"
    config.write_text('{"train_micro_batch_size_per_gpu": 64}')
    script = TOO_LARGE.replace("--bf16", f"--bf16 --deepspeed --deepspeed_config {config}")
    done = slurm.sbatch(script, "--gres=gpu:h100:1")
    assert done.returncode == 0


def test_the_hook_leaves_no_error_in_the_controllers_log(slurm: Slurm, gate: RunningGate) -> None:
    """One line a call; no field is asked for that this release does not know."""
    before = len(slurm.log())
    number = job_number(slurm.sbatch(FITS, "--gres=gpu:h100:1", "--hold"))
    slurm.run("scontrol", "update", f"jobid={number}", "features=hopper")
    slurm.run("srun", "--gres=gpu:h100:1", "hostname")
    lines = [line for line in slurm.log()[before:].splitlines() if "job_submit/lua" in line or "peakgate" in line]
    assert [line.split()[2] for line in lines if " admitted " in line] == ["peakgate:"] * 3
    assert len(lines) == 3, lines


def test_a_request_for_any_card_is_steered_to_one_that_fits(slurm: Slurm, gate: RunningGate) -> None:
    """Where the table of cards says so. Else it is told that it may get one that is too small; refused only where the table wants that."""
    rows = "\n".join(
        f"  - {{type: {kind}, partitions: [any], gpu: {name}}}"
        for kind, name in {"a100-40": "a100-40gb", "a100-80": "a100-80gb", "h100": "h100-80gb"}.items()
    )
    for policy, want_refused in (("", False), ("untyped: worst\n", True), ("untyped: pin\n", False)):
        (gate.folder / "cards.yaml").write_text(f"{policy}cards:\n{rows}\n")
        done = slurm.sbatch(BETWEEN, "--gres=gpu:1", "--partition=any")
        assert is_refused(done) == want_refused
        assert ("not a100-40gb, which it may get as well" in done.stderr) == (policy == "")
        assert ("ask for gpu:a100-80" in done.stderr) == (policy == "")
    (gate.folder / "cards.yaml").unlink()
    assert "asks for a100-80 now" in done.stderr
    assert slurm.job(job_number(done))["TresPerNode"] == "gres:gpu:a100-80:1"


def test_a_job_that_does_not_fit_may_be_tried_within_a_budget(slurm: Slurm, gate: RunningGate) -> None:
    """Its prediction is stamped, so that what comes of it is learned from; a try too many is refused with the service's word."""
    script = f"{TOO_LARGE}#PEAKGATE try=a new kernel\n"
    done = [slurm.sbatch(script, "--gres=gpu:h100:1", "--hold") for _ in range(4)]
    granted = [each for each in done if each.returncode == 0]
    assert 0 < len(granted) < 4
    assert "admitted to be tried (a new kernel)" in granted[0].stderr
    assert stamp(slurm, granted[0]) not in ("", "peakgate=unchecked")
    assert is_refused(done[-1])
    last = gate.journal()[-4]
    assert (last["admitted_by"], last["wish"], last["outcome"]) == ("try", "a new kernel", "would_refuse")
