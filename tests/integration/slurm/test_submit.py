"""`peakgate sbatch`, `srun` and `salloc` on a real Slurm: what the user reads, what the controller's plugins see, what runs."""

from __future__ import annotations

import re
import stat
import sys

import pytest
from tests.bench.programs import ROOT, Program
from tests.integration.slurm.cluster import Slurm, job_number
from tests.integration.slurm.submit_host import (
    FITS,
    SOURCES,
    STARTS,
    TOO_LARGE,
    Seen,
    settings_of,
    submit,
    use_service,
    watch,
    with_launcher,
)

from peakgate.hooks.slurm.attached import attached_job, read_attached

GPUS = ["--gres=gpu:h100:1", "--gpus=h100:1", "--gpus-per-node=h100:1", "--gpus-per-task=h100:1"]


@pytest.fixture(autouse=True)
def _served(slurm: Slurm, service: Program) -> None:
    """Submissions ask the service, unless a test says otherwise."""
    use_service(slurm, service.target)


@pytest.mark.parametrize("flag", GPUS)
def test_a_batch_job_is_judged_attached_and_run(slurm: Slurm, flag: str) -> None:
    """Whatever way of asking for a card; the plugin sees the document, bound to the script as Slurm has it."""
    watch(slurm)
    script = slurm.script(f"#SBATCH {flag} -n1\n{FITS}")
    done = submit(slurm, "sbatch", script)
    assert done.stderr.startswith("peakgate: fits: a GPU needs "), done.stderr
    seen = Seen(slurm)
    job = attached_job(read_attached(seen.environment), seen.script)
    assert job is not None
    assert job.gpu.type == "h100-80gb"
    assert slurm.wait(job_number(done))["JobState"] == "COMPLETED"


def test_what_the_plugin_sees_of_wrap_and_of_standard_input(slurm: Slurm) -> None:
    """The digest is that of the script which Slurm makes, or was given."""
    watch(slurm)
    for words, stdin in ((["--wrap", FITS], ""), ([], f"#!/bin/sh\n{FITS}")):
        done = submit(slurm, "sbatch", "--gpus=h100:1", *words, stdin=stdin)
        seen = Seen(slurm)
        assert attached_job(read_attached(seen.environment), seen.script) is not None, done.stderr


def test_a_script_out_of_a_pipe_reaches_slurm(slurm: Slurm) -> None:
    """A shell's `<(…)` can be read once, and sbatch must."""
    watch(slurm)
    script = slurm.script(FITS)
    command = f"exec {sys.executable} -c '{STARTS}' sbatch --gpus=h100:1 <(cat {script})"
    done = slurm.run("bash", "-c", command, env={"PYTHONPATH": SOURCES, "PEAKGATE_SUBMIT_SETTINGS": settings_of(slurm)}, reads_all=True)
    assert (done.returncode, Seen(slurm).script) == (0, script.read_text()), done.stderr


@pytest.mark.parametrize("export", ["--export=NONE", "--export=PATH"])
def test_nothing_is_lost_where_the_users_environment_is(slurm: Slurm, export: str) -> None:
    """Slurm's own variables are always propagated."""
    watch(slurm)
    submit(slurm, "sbatch", export, "--gpus=h100:1", slurm.script(FITS))
    seen = Seen(slurm)
    assert seen.environment["PEAKGATE_JOB"] == ""
    assert attached_job(read_attached(seen.environment), seen.script) is not None


def test_a_refused_job_reaches_no_controller(slurm: Slurm) -> None:
    """Mode enforce ends it at the prompt, with the status of a refusal; here without a service."""
    watch(slurm)
    alone = {"PEAKGATE_MODE": "enforce", "PEAKGATE_SUBMIT_SETTINGS": "/dev/null"}
    done = submit(slurm, "sbatch", "--gpus=h100:1", slurm.script(TOO_LARGE), env=alone)
    assert (done.returncode, done.stdout, (slurm.folder / "seen").read_text()) == (1, "", "")
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_interactive_jobs_carry_words_in_their_comment(slurm: Slurm, program: str) -> None:
    """Beside the user's own."""
    watch(slurm)
    done = submit(slurm, program, "--gpus=h100:1", "--comment=mine", *FITS.split())
    comment = Seen(slurm).comment
    assert re.match("mine; peakgate: id=[0-9a-f]{32} digest=", comment)
    assert done.returncode == 0, done.stderr


def test_a_comment_in_the_script_is_kept(slurm: Slurm) -> None:
    """A batch job needs none of ours."""
    watch(slurm)
    submit(slurm, "sbatch", "--gpus=h100:1", slurm.script(f"#SBATCH --comment='project 7'\n{FITS}"))
    assert Seen(slurm).comment == "project 7"


def test_arrays_are_one_submission_and_heterogeneous_jobs_one_verdict(slurm: Slurm) -> None:
    """As Slurm has them."""
    script = slurm.script(TOO_LARGE)
    done = submit(slurm, "sbatch", "--array=0-1", "--gpus=h100:1", script)
    assert len(done.stderr.splitlines()) == 3
    assert slurm.wait(f"{job_number(done)}_1")["JobState"] == "COMPLETED"
    done = submit(slurm, "sbatch", "-n1", ":", "-n1", "--gpus-per-task=h100:1", script, env={"PEAKGATE_MODE": "enforce"})
    assert done.returncode == 1


def test_the_filter_advises_inside_the_submit_commands(slurm: Slurm) -> None:
    """The same verdict without a command of ours in front; what is attached goes into the comment."""
    watch(slurm)
    _install_filter(slurm)
    script = slurm.script(f"#SBATCH --gres=gpu:h100:1\n{FITS}")
    done = slurm.run("sbatch", "--comment=mine", script, reads_all=True)
    assert done.stderr.startswith("peakgate: fits: a GPU needs "), done.stderr
    seen = Seen(slurm)
    attached = read_attached({}, seen.comment)
    assert re.match("mine; peakgate: id=[0-9a-f]{32} digest=", seen.comment)
    assert attached_job(attached, seen.script) is None  # tied to this script; the document itself is with the service
    done = slurm.run("srun", "--gpus=h100:1", *FITS.split(), reads_all=True, env={"PATH": with_launcher(slurm)})
    assert "peakgate: fits" in done.stderr
    assert "digest=" in Seen(slurm).comment


def test_the_filter_refuses_in_mode_enforce(slurm: Slurm) -> None:
    """The command ends with an error of its own."""
    _install_filter(slurm)
    script = slurm.script(f"#SBATCH --gres=gpu:h100:1\n{TOO_LARGE}")
    done = slurm.run("sbatch", script, reads_all=True, env={"PEAKGATE_MODE": "enforce"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "peakgate: refused" in done.stderr
    done = slurm.run("sbatch", "--gpus=h100:1", "--wrap", TOO_LARGE, reads_all=True, env={"PEAKGATE_MODE": "enforce"})
    assert done.returncode == 1


def test_the_filter_does_not_judge_twice_nor_what_asks_for_no_card(slurm: Slurm) -> None:
    """`peakgate sbatch` has done so; a job without GPUs calls nothing."""
    _install_filter(slurm, counted=True)
    submit(slurm, "sbatch", "--gpus=h100:1", slurm.script(FITS))
    slurm.run("sbatch", "--wrap", "hostname", reads_all=True)
    assert not (slurm.home() / "calls").exists()
    slurm.run("sbatch", "--gpus=h100:1", "--wrap", "hostname", reads_all=True)
    assert (slurm.home() / "calls").read_text() == "sbatch\n"


def test_a_filter_whose_command_hangs_lets_the_job_through(slurm: Slurm) -> None:
    """After the seconds that it is given, whatever the command does."""
    command = slurm.write("hangs", "#!/bin/sh\ntrap '' TERM\nsleep 30\n")
    command.chmod(0o755)
    text = (ROOT / "deploy/slurm/cli_filter.lua").read_text()
    slurm.cli_filter(text.replace('COMMAND = "peakgate"', f'COMMAND = "{command}"').replace("SECONDS = 5", "SECONDS = 0.2"))
    done = slurm.run("sbatch", "--gpus=h100:1", "--wrap", "hostname", seconds=8)
    assert done.returncode == 0
    assert slurm.wait(job_number(done))["JobState"] == "COMPLETED"


def _install_filter(slurm: Slurm, *, counted: bool = False) -> None:
    """The filter as it is shipped, with this Python's command."""
    count = f'echo "$1" >> {slurm.home()}/calls\n' if counted else ""
    exports = f"export PYTHONPATH={SOURCES} PEAKGATE_SUBMIT_SETTINGS={settings_of(slurm)}\n"
    command = slurm.write("peakgate", f"#!/bin/sh\n{count}{exports}exec {sys.executable} -c '{STARTS}' \"$@\"\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    text = (ROOT / "deploy/slurm/cli_filter.lua").read_text().replace('COMMAND = "peakgate"', f'COMMAND = "{command}"')
    slurm.cli_filter(text.replace("SECONDS = 5", "SECONDS = 30"))
