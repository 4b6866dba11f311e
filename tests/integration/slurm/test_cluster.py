"""The test cluster is a Slurm: it runs jobs of a normal user on fake GPUs, asks its scripts, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
from tests.integration.slurm.cluster import NODES, OTHER_USER, USER, Slurm, cluster, job_number, missing, parse_record

REFUSES = """
function slurm_job_submit(job_desc, part_list, submit_uid) slurm.log_user("no: " .. submit_uid) return 2072 end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
REFUSES_AT_THE_PROMPT = """
function slurm_cli_setup_defaults(options, early_pass) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, offset) slurm.log_error("never") return slurm.ERROR end
function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end
return slurm.SUCCESS
"""


def test_a_job_of_a_normal_user_runs_on_the_cards_it_asked_for(slurm: Slurm) -> None:
    """The job runs as the user, sees as many cards as it asked for, and ends."""
    done = slurm.sbatch("id -un; echo $CUDA_VISIBLE_DEVICES", "--gres=gpu:a100-80:2", "--partition=any", "--output=said")
    found = slurm.wait(job_number(done))
    assert (found["JobState"], found["NodeList"], found["TresPerNode"]) == ("COMPLETED", "a100n1", "gres:gpu:a100-80:2")
    user, cards = (slurm.home() / "said").read_text().split()
    assert user == USER
    assert len(cards.split(",")) == 2


def test_srun_answers_at_the_prompt(slurm: Slurm) -> None:
    """An interactive job starts at once, on all nodes that it asks for."""
    done = slurm.run("srun", "--nodes=2", "--gres=gpu:8", "--label", "printenv", "SLURMD_NODENAME", user=OTHER_USER)
    assert sorted(done.stdout.split()) == ["0:", "1:", "h100n1", "h100n2"]


def test_a_new_script_is_in_force_at_once(slurm: Slurm) -> None:
    """The controller takes a script from the next submission on, and takes the next one in its place."""
    for _ in range(3):
        slurm.job_submit(REFUSES)
        refused = slurm.sbatch("true")
        assert refused.returncode == 1
        assert "no: 65534" in refused.stderr
        slurm.reset()
        assert slurm.sbatch("true").returncode == 0


def test_the_submit_command_asks_its_own_script(slurm: Slurm) -> None:
    """cli_filter.lua runs in the command of the user."""
    slurm.cli_filter(REFUSES_AT_THE_PROMPT)
    refused = slurm.run("srun", "true")
    assert refused.returncode != 0
    assert "never" in refused.stderr


def test_a_stopped_cluster_leaves_no_process_and_no_file(slurm_cluster: Slurm) -> None:
    """A cluster beside the first one starts in seconds, and its end takes a job with it that ignores every signal."""
    began = time.monotonic()
    with cluster("MessageTimeout=11") as other:
        assert time.monotonic() - began < 10
        assert "MessageTimeout          = 11 sec" in other.run("scontrol", "show", "config").stdout
        other.run("srun", "--output=none", "--immediate=5", "true")
        other.sbatch("trap '' TERM INT; touch started; while :; do sleep 0.1; done")
        deadline = time.monotonic() + 20
        while not (other.home() / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert not other.folder.exists()
    assert all(process.poll() is not None for process in other.processes.values())
    assert str(other.folder) not in "".join(_environments())
    assert slurm_cluster.run("sinfo", "-h", "-n", ",".join(NODES), "-o", "%D", "-p", "any").stdout.strip() == "3"


def _environments() -> list[str]:
    from pathlib import Path

    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return found


def test_a_record_is_read_field_by_field() -> None:
    """Values with blanks stay whole."""
    line = "JobId=7 JobName=a b Comment=x y=z Command=/bin/sh -c true TRES=cpu=1,node=1 Power="
    want = {"JobId": "7", "JobName": "a b", "Comment": "x y=z", "Command": "/bin/sh -c true", "TRES": "cpu=1,node=1", "Power": ""}
    assert parse_record(line) == want


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the programs the tests say what to install, and without root who may run them."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    if not missing().startswith("a test cluster"):
        assert "apt-get install" in missing()
    monkeypatch.setattr("tests.integration.slurm.cluster.SEARCHED", "/nonexistent")
    assert "slurmctld" in missing()
    assert "apt-get install munge slurmctld" in missing()
