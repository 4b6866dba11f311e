"""The agent's check-up."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, H100, ONE_GPU, ProcTree, SimulatedNode, a_row

from peakgate.agent.doctor_node import (
    cgroup_finding,
    clock_finding,
    control_finding,
    environment_finding,
    jobs_folder_finding,
    spool_finding,
)
from peakgate.agent.doctor_nvml import driver_finding, nvml_findings
from peakgate.agent.finding import Finding
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.proc import ProcFolder
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.spool import Spool

MIG = "MIG-00000000-0000-4000-8000-00000000000a"


def found(simulated: SimulatedNvml, scenario: str, proc: Path) -> dict[str, Finding]:
    """The findings of one GPU by name."""
    simulated.load(scenario)
    simulated.set_time(0.0)
    return {finding.name: finding for finding in nvml_findings(Nvml(module=load_pynvml()), ProcFolder(root=proc))}


@pytest.mark.parametrize(
    ("driver", "package", "want"),
    [
        ("580.105.08", "13.615.71", "ok"),
        ("535.54.03", "13.615.71", "bad"),
        ("535.54.03", "12.535.77", "ok"),
        ("535.86.10", "13.615.71", "ok"),
        ("535.86.10", "12.535.77", "bad"),
        ("535.43.02", "12.535.108", "bad"),
        ("525.60", "", "ok"),
    ],
)
def test_drivers_whose_lists_are_misread_are_named(driver: str, package: str, want: str) -> None:
    """Drivers 535.43 to 535.85 and nvidia-ml-py 12.535.77 go together and with nothing else; each has its own remedy."""
    finding = driver_finding(driver, package)
    assert finding.state == want
    assert (finding.remedy != "") is (want == "bad")


def test_a_good_node(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """Accounting and persistence on, every pid known."""
    tree = ProcTree(tmp_path)
    tree.add(7)
    scenario = f"gpu 0 uuid={GPU} {H100} accounting=on persistence=on\nprocess 0 pid=7 memory=0:1G\n"
    findings = found(simulated, scenario, tree.root)
    assert {name: finding.state for name, finding in findings.items()} == dict.fromkeys(
        ("driver", "memory", "accounting", "persistence", "pids"), "ok"
    )
    assert "1 processes" in findings["memory"].found


def test_a_node_with_everything_off(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """Notes with remedies; only the pids of another namespace make the figures useless."""
    scenario = f"gpu 0 uuid={GPU} {H100} persistence=off\nprocess 0 pid=7 memory=0:NA\n"
    findings = found(simulated, scenario, tmp_path)
    want = {"driver": "ok", "memory": "note", "accounting": "note", "persistence": "note", "pids": "bad"}
    assert {name: finding.state for name, finding in findings.items()} == want
    assert all(finding.remedy for finding in findings.values() if finding.state != "ok")
    assert "hostPID" in findings["pids"].remedy


@pytest.mark.parametrize(
    ("scenario", "name", "state"),
    [
        (f"{ONE_GPU}error 9\n", "driver", "note"),
        (f"{ONE_GPU}error 18\n", "driver", "bad"),
        (f"{ONE_GPU}error 15 gpu=0\n", "gpus", "bad"),
        (f"{ONE_GPU}error 999 function=nvmlDeviceGetCount_v2\n", "nvml", "bad"),
        (f"{ONE_GPU}mig 0 uuid={MIG} total=20G gi=1 ci=0\n", "accounting", "note"),
    ],
)
def test_a_node_that_is_not_well(simulated: SimulatedNvml, tmp_path: Path, scenario: str, name: str, state: str) -> None:
    """No driver is a submit host; a driver that does not fit, a lost GPU and an error are not."""
    assert found(simulated, scenario, tmp_path)[name].state == state


def test_a_gpu_that_does_not_tell_its_memory(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """An integrated one: there is nothing to watch."""
    lists = ("ComputeRunningProcesses", "GraphicsRunningProcesses", "MPSComputeRunningProcesses")
    functions = ("nvmlDeviceGetMemoryInfo_v2", *(f"nvmlDeviceGet{name}_v3" for name in lists))
    errors = "".join(f"error 3 function={name}\n" for name in functions)
    assert found(simulated, ONE_GPU + errors, tmp_path)["memory"].state == "bad"


def folders(root: Path, *names: str) -> Path:
    """A tree of control groups."""
    for name in names:
        (root / name).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("names", "state", "want"),
    [
        (["memory", "cpu"], "ok", "version 1 at"),
        (["memory/slurm_node1/uid_1"], "ok", "Slurm"),
        (["memory", "unified"], "ok", "version 2 beside it"),
        ([], "bad", "no control groups"),
    ],
)
def test_the_form_of_control_groups_is_told(tmp_path: Path, names: list[str], state: str, want: str) -> None:
    """Version 1, both, or none."""
    finding = cgroup_finding(folders(tmp_path, *names))
    assert (finding.state, want in finding.found) == (state, True)


@pytest.mark.parametrize(("job", "want"), [("job_402", ", Slurm"), ("s0123456789abc", ", Slurm's jobs by SLUID")])
def test_slurms_names_are_told(tmp_path: Path, job: str, want: str) -> None:
    """Version 2, with jobs by number or by SLUID."""
    root = folders(tmp_path, f"system.slice/slurmstepd.scope/{job}")
    (root / "cgroup.controllers").touch()
    assert cgroup_finding(root).found.endswith(want)


def test_environments_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """As a user without the right to; root reads all."""
    for pid, owner in ((7, os.geteuid()), (8, os.geteuid() + 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(b"A=1\0")
        if os.geteuid() == 0:
            os.chown(tmp_path / str(pid), owner, -1)
    finding = environment_finding(tmp_path)
    assert finding.state == "ok"
    (tmp_path / "8" / "environ").unlink()
    (tmp_path / "8" / "environ").symlink_to("environ")  # opening it is an error for root as well
    assert environment_finding(tmp_path).state == ("note" if os.geteuid() == 0 else "ok")


def test_the_spool_is_told(tmp_path: Path) -> None:
    """Not made yet, with rows, no spool at all, or of another version."""
    path = tmp_path / "agent.db"
    assert spool_finding(path).found.endswith("not made yet")
    spool = Spool(path=path)
    spool.put(rows=[a_row()])
    assert spool_finding(path).found.endswith("1 rows and 0 job ends wait")
    spool.close()
    (tmp_path / "note.txt").write_text("no spool, but a text that is long enough to be no header of SQLite" * 9)
    assert spool_finding(tmp_path / "note.txt").state == "bad"


def test_the_jobs_folder_is_told(tmp_path: Path) -> None:
    """It is only there where a prolog writes it."""
    assert jobs_folder_finding(tmp_path / "nowhere").state == "note"
    (tmp_path / "GPU-1.json").write_text("{}")
    assert jobs_folder_finding(tmp_path).found.endswith("1 files")


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """Something on the control socket that gives this answer once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_a_running_agent_is_told(tmp_path: Path) -> None:
    """Its state; or that none answers; or that what answers is no agent."""
    path = tmp_path / "control.sock"
    assert control_finding(path).state == "note"
    with answering(path, b'{"state": "paused"}\n'):
        assert control_finding(path).found.startswith("paused")
    path.unlink()
    with answering(path, b"HTTP/1.1 400\n"):
        assert control_finding(path).state == "note"


def test_a_service_that_is_away_is_told() -> None:
    """Its clock cannot be compared then."""
    assert clock_finding("127.0.0.1:1").state == "bad"


def test_the_check_up_leaves_nothing_open(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """An open session would block a reset of the GPU."""
    found(simulated, ONE_GPU, tmp_path)
    with pytest.raises(load_pynvml().NVMLError):
        load_pynvml().nvmlDeviceGetCount()
    SimulatedNode(simulated, ONE_GPU)
