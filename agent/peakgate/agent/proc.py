"""What /proc says about a process: identity, owner, control group, and the few environment variables the agent looks at."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

PREDICTION_NAMES = ("PEAKGATE_PREDICTION", "SLURM_PEAKGATE_PREDICTION")
"""The second is what is left of a batch job's variables under --export=NONE (sbatch(1))."""

ENVIRONMENT_NAMES = frozenset({*PREDICTION_NAMES, "SLURM_JOB_ID", "SLURM_JOB_SLUID", "SLURM_RESTART_COUNT"})
"""All else in a process's environment is private and never kept."""

READ_BYTES = 16 << 10
PARENT_FIELD, GROUP_FIELD, SESSION_FIELD, START_TICKS_FIELD = 4, 5, 6, 22
"""proc(5): fields of /proc/PID/stat, counted from 1; fields 1 and 2 end at the last closing parenthesis."""
PROGRAM_FIELDS = (PARENT_FIELD, GROUP_FIELD, SESSION_FIELD, START_TICKS_FIELD)
FIRST_NAMESPACE = "pid:[4026531836]"
"""What /proc/PID/ns/pid of the machine's own pid namespace reads: PROC_PID_INIT_INO, 0xEFFFFFFC, in include/linux/proc_ns.h."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process for good: the kernel gives a pid again, but not with the same start. `start_ticks` is 0 when /proc does not show it."""

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A process among others: who started it, in which group and session, and what it runs: the executable's name, or the kernel's own."""

    process: ProcessId
    parent_pid: int
    group: int
    session: int
    name: str


class ProcFolder:
    """Reads /proc. Whatever cannot be read (gone, not permitted) is absent in the answer, never an error."""

    def __init__(self, *, root: Path = Path("/proc")) -> None:
        self._root = root

    def start_ticks(self, pid: int) -> int | None:
        """Start of the process in clock ticks since boot; None when there is no such process."""
        fields = self._text(pid, "stat").rpartition(")")[2].split()
        return int(fields[START_TICKS_FIELD - 3]) if len(fields) > START_TICKS_FIELD - 3 else None

    def program(self, pid: int) -> Program | None:
        """The process among others; None when there is no such process."""
        before, _, after = self._text(pid, "stat").rpartition(")")
        fields = after.split()
        if len(fields) <= START_TICKS_FIELD - 3:
            return None
        parent, group, session, start_ticks = (int(fields[number - 3]) for number in PROGRAM_FIELDS)
        name = self._executable(pid) or before.partition("(")[2]
        return Program(process=ProcessId(pid, start_ticks), parent_pid=parent, group=group, session=session, name=name)

    def uid(self, pid: int) -> int | None:
        """The real user id."""
        for line in self._text(pid, "status").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
        return None

    def cgroup(self, pid: int) -> str:
        """The text of /proc/PID/cgroup."""
        return self._text(pid, "cgroup")

    def environment(self, pid: int, names: Collection[str] = ENVIRONMENT_NAMES) -> Mapping[str, str]:
        """The variables of these names. The user can set them to anything: a hint, not a fact."""
        pairs = (entry.partition("=") for entry in self._text(pid, "environ").split("\0"))
        return {name: value for name, _, value in pairs if name in names}

    def is_rank(self, pid: int) -> bool | None:
        """Whether a launcher has given the process a LOCAL_RANK; None without the right to look."""
        if self._text(pid, "environ"):
            return bool(self.environment(pid, {"LOCAL_RANK"}))
        return False if self._executable(pid) else None

    def boot_id(self) -> str:
        """The kernel's boot id, or empty."""
        try:
            return (self._root / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return ""

    def sees_the_machine(self) -> bool:
        """Whether this process is in the machine's own pid namespace, where NVML's pids and those of /proc are the same for sure."""
        return self._link("self/ns/pid") == FIRST_NAMESPACE

    def _executable(self, pid: int) -> str:
        """The file's name; a script's is that of its interpreter, unlike the name in stat. Empty without the right to look."""
        return self._link(f"{pid}/exe").removesuffix(" (deleted)").rpartition("/")[2]

    def _link(self, path: str) -> str:
        try:
            return os.readlink(f"{self._root}/{path}")  # noqa: PTH115 (as for _read)
        except OSError:
            return ""

    def _text(self, pid: int, name: str) -> str:
        try:
            return _read(f"{self._root}/{pid}/{name}").decode(errors="replace")
        except OSError:
            return ""


def _read(path: str) -> bytes:
    """The whole file, by plain system calls: this runs for every process every second, and pathlib costs three times as much."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(descriptor, READ_BYTES), b""))
    finally:
        os.close(descriptor)
