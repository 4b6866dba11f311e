"""Whether NVML's pids are those of /proc."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs
from tests.unit.agent.builders import GPU, OTHER_GPU

from peakgate.agent.host_pids import CHECKED_LISTS, HostPids
from peakgate.agent.proc import FIRST_NAMESPACE, ProcessId, ProcFolder

SHOWN, MISSING = ProcessId(7, 100), ProcessId(8, 0)


def in_namespace(folder: Path, link: str) -> HostPids:
    """A check by an agent that is in this pid namespace."""
    (folder / "self/ns").mkdir(parents=True)
    (folder / "self/ns/pid").symlink_to(link)
    return HostPids(proc=ProcFolder(root=folder))


def test_a_pid_that_proc_lacks_twice_refuses_the_attribution(tmp_path: Path) -> None:
    """In a container without the host's pids nothing can be attributed: said once, with the remedy."""
    check = in_namespace(tmp_path, "pid:[4026532001]")
    with capture_logs() as logs:
        for _ in range(3):
            check.look(GPU, [SHOWN, MISSING])
    assert "does not see the machine's own pids" in check.refused
    assert [entry["pids"] for entry in logs] == [[8]]
    assert "hostPID" in logs[0]["remedy"]


def test_a_process_that_dies_between_list_and_proc_refuses_nothing(tmp_path: Path) -> None:
    """One list with a pid that has just gone is no proof, nor are two GPUs that lose one each."""
    check = in_namespace(tmp_path, "pid:[4026532001]")
    check.look(GPU, [SHOWN, MISSING])
    check.look(OTHER_GPU, [MISSING])
    check.look(GPU, [SHOWN])
    check.look(GPU, [SHOWN, ProcessId(9, 0)])
    assert check.refused == ""


def test_in_the_machines_own_namespace_nothing_is_refused(tmp_path: Path) -> None:
    """There the pids are right, and one that /proc lacks is a process that the driver has not let go of."""
    check = in_namespace(tmp_path, FIRST_NAMESPACE)
    for _ in range(3):
        check.look(GPU, [MISSING])
    assert check.refused == ""


def test_the_check_ends_after_the_start(tmp_path: Path) -> None:
    """A stale entry of next month does not stop an agent that has been right all along; idle GPUs do not use the check up."""
    check = in_namespace(tmp_path, "pid:[4026532001]")
    for _ in range(CHECKED_LISTS):
        check.look(GPU, [])
    for _ in range(CHECKED_LISTS):
        check.look(GPU, [SHOWN])
    for _ in range(3):
        check.look(GPU, [MISSING])
    assert check.refused == ""


def test_the_kernel_says_which_namespace_this_is() -> None:
    """The real link of this process is read: it is the machine's own namespace exactly when the kernel's number says so."""
    assert ProcFolder().sees_the_machine() is (str(Path("/proc/self/ns/pid").readlink()) == FIRST_NAMESPACE)
