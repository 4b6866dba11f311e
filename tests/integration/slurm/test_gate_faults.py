"""The gate and the service die, come back and are told to stop: no job is lost, and each says whether it was checked."""

from __future__ import annotations

import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.bench.programs import peakgate_server
from tests.integration.slurm.cluster import Done, Slurm, job_number
from tests.integration.slurm.gate import RunningGate, running_gate, use_hook
from tests.integration.slurm.jobs import FITS, TOO_LARGE
from tests.integration.slurm.joining import until

ENFORCE = "mode: enforce\n"
PATIENT = ("--deadline", "5")


def stamps(slurm: Slurm, done: list[Done]) -> list[str]:
    """What the jobs carry."""
    return [slurm.job(job_number(each)).get("AdminComment", "").strip() for each in done]


def children(gate: RunningGate) -> list[int]:
    """Processes that the gate started."""
    return [int(each) for each in Path(f"/proc/{gate.process.pid}/task/{gate.process.pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_the_service_the_gate_judges_by_itself(slurm: Slurm, tmp_path: Path) -> None:
    """Unrecorded, which the message and the stamp say."""
    with peakgate_server(tmp_path) as service, running_gate(tmp_path, ENFORCE, "--server", service.target, *PATIENT) as gate:
        use_hook(slurm, gate.socket, budget_seconds="6")
        recorded = slurm.sbatch(FITS, "--gres=gpu:h100:1", "--hold")
        service.process.kill()
        service.process.wait()
        alone = [slurm.sbatch(FITS, "--gres=gpu:a100-80:1", "--partition=a100", "--hold") for _ in range(3)]
        refused = slurm.sbatch(TOO_LARGE, "--gres=gpu:h100:1")
        journal, metrics = gate.journal(5), gate.metrics()
    assert stamps(slurm, [recorded])[0] not in ("", "peakgate=unchecked")
    assert stamps(slurm, alone) == ["peakgate=unchecked"] * 3
    assert "not recorded" in alone[0].stderr
    assert (refused.returncode, "too few" in refused.stderr) == (1, True)
    assert [each["by"] for each in journal] == ["service"] + ["beside"] * 4
    assert 'peakgate_gate_service_failures_total{code="UNAVAILABLE"}' in metrics


def test_a_site_may_want_no_verdict_without_the_service(slurm: Slurm, tmp_path: Path) -> None:
    """Then a job is admitted unchecked, or refused where its partition wants it checked."""
    rules = "mode: enforce\njudge_without_service: false\nrules:\n- {partition: a100, without_answer: refuse}\n"
    with running_gate(tmp_path, rules, "--server", "127.0.0.1:1", "--no-beside", *PATIENT) as gate:
        use_hook(slurm, gate.socket, budget_seconds="6")
        admitted = slurm.sbatch(TOO_LARGE, "--gres=gpu:h100:1", "--hold")
        refused = slurm.sbatch(TOO_LARGE, "--gres=gpu:a100-80:1", "--partition=a100")
        metrics = gate.metrics()
    assert stamps(slurm, [admitted]) == ["peakgate=unchecked"]
    assert (refused.returncode, "cannot be checked now" in refused.stderr) == (1, True)
    assert 'peakgate_gate_unchecked_total{reason="away"} 2.0' in metrics


def test_a_gate_and_a_service_that_are_killed_under_load_lose_no_job(slurm: Slurm, tmp_path: Path) -> None:
    """Every job is there; those after the kill say that nobody checked them."""
    with peakgate_server(tmp_path) as service, running_gate(tmp_path, ENFORCE, "--server", service.target) as gate:
        use_hook(slurm, gate.socket)
        beside = children(gate)

        def submit(number: int) -> Done:
            if number == 15:
                gate.process.kill()
                service.process.kill()
            return slurm.sbatch(FITS, "--gres=gpu:h100:1", "--hold")

        with ThreadPoolExecutor(5) as pool:
            done = list(pool.map(submit, range(40)))
    found = stamps(slurm, done)
    assert [each.returncode for each in done] == [0] * 40
    assert all(each.startswith("peakgate=") for each in found), found
    assert found[-10:] == ["peakgate=unchecked"] * 10
    assert beside
    until(lambda: not any(map(is_alive, beside)), "the processes end")


def test_a_new_gate_takes_the_place_of_a_dead_one_and_of_no_living_one(tmp_path: Path) -> None:
    """A socket that a kill left is no hindrance; a second gate is refused."""
    with running_gate(tmp_path, ENFORCE, "--no-beside") as gate:
        gate.process.kill()
        gate.process.wait()
    assert (tmp_path / "gate.sock").exists()
    with running_gate(tmp_path, ENFORCE, "--no-beside") as gate:
        second = subprocess.run(gate.process.args, capture_output=True, text=True, timeout=30, check=False)
        assert (second.returncode, "another gate answers" in second.stderr) == (2, True)
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(gate.socket))


def test_a_gate_that_is_told_to_stop_answers_first(tmp_path: Path) -> None:
    """Status 0, no socket left, and the service beside it ends as well."""
    with running_gate(tmp_path, ENFORCE) as gate:
        beside = children(gate)
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(timeout=10) == 0
    assert not gate.socket.exists()
    assert beside
    assert not any(map(is_alive, beside))


def test_a_service_beside_the_gate_that_dies_is_started_again(tmp_path: Path) -> None:
    """Jobs are admitted unchecked meanwhile."""
    with running_gate(tmp_path, ENFORCE) as gate:
        for pid in children(gate):
            subprocess.run(["kill", "-9", str(pid)], check=True)
        until(lambda: "peakgate_gate_beside_ready 0.0" in gate.metrics(), "the gate sees it")
        until(lambda: gate.log.count("is ready") == 2, "another one is ready")


@pytest.mark.parametrize("text", ["mode: loud\n", "- a\n"])
def test_a_gate_does_not_begin_with_broken_rules(tmp_path: Path, text: str) -> None:
    """It says which fault."""
    with pytest.raises(RuntimeError, match=r"gate\.yaml"), running_gate(tmp_path, text, "--no-beside"):
        pass
