"""Which program a process of a job belongs to: the one that a shell, a scheduler or a container runtime started.

Ranks of one training hang below one launcher, trainings of a sweep do not; sessions and process groups alone do not tell them apart:
torchrun puts every rank into a session of its own (torch/distributed/elastic/multiprocessing/subprocess_handler/subprocess_handler.py,
start_new_session), while a shell script without job control keeps everything that it starts in one process group.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.agent.cgroup import CgroupJob
from peakgate.agent.proc import ProcessId, ProcFolder, Program

# fmt: off
STARTERS = frozenset({
    # shells
    "bash", "sh", "dash", "zsh", "ksh", "ksh93", "mksh", "tcsh", "csh", "fish", "busybox", "slurm_script",
    # programs that run other programs, one after the other or side by side
    "xargs", "parallel", "perl", "make", "tmux", "tmux: server", "screen", "node",
    "sshd", "sshd-session", "login", "su", "sudo", "crond",
    # what stands at the top of a job, a container or the machine
    "slurmstepd", "srun", "systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-supervise", "supervisord",
    "containerd-shim", "containerd-shim-runc-v2", "conmon", "crun", "runc", "enroot", "enroot-nsenter",
})
# fmt: on
"""Programs whose children are programs of their own. One that is missing here joins what it starts into one training."""
HIGHEST = 64
"""Parents that are looked at; real chains have fewer than ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a job a process runs: the step (or container), the task in it when the scheduler says, the program it belongs to.

    `launcher` is the process that gives the ranks their numbers; a process that is no rank is its own.
    """

    step: str
    task: str
    root: ProcessId
    launcher: ProcessId


def place_of(*, proc: ProcFolder, process: ProcessId, cgroup: CgroupJob | None) -> Place:
    """The place as /proc shows it now."""
    launcher = root = process
    program = proc.program(process.pid)
    if program and program.process == process:
        first = _launcher(proc, program)
        launcher, root = first.process, _root(proc, first)
    step = (cgroup.step or cgroup.container) if cgroup else ""
    return Place(step=step, task=cgroup.task if cgroup else "", root=root, launcher=launcher)


def _launcher(proc: ProcFolder, program: Program) -> Program:
    """The nearest process without LOCAL_RANK, in whatever session: torchrun, deepspeed and Lightning set it for the ranks they start.

    Without the right to see it a process counts as a rank: launchers are what most jobs on several GPUs have above them.
    """
    for _ in range(HIGHEST):
        parent = _parent(proc, program)
        if parent is None or proc.is_rank(program.process.pid) is False:
            break
        program = parent
    return program


def _root(proc: ProcFolder, program: Program) -> ProcessId:
    """The highest program of the session below a starter; for one whose parent is gone, the leader of its process group stands for it."""
    for _ in range(HIGHEST):
        if program.parent_pid <= 1:
            return ProcessId(program.group, proc.start_ticks(program.group) or 0)
        parent = _parent(proc, program)
        if parent is None or parent.session != program.session:
            break
        program = parent
    return program.process


def _parent(proc: ProcFolder, program: Program) -> Program | None:
    """The parent, when it is a part of the same program. One that started later has only got the number of one that is gone."""
    parent = proc.program(program.parent_pid) if program.parent_pid > 1 else None
    if parent is None or parent.name in STARTERS or parent.process.start_ticks > program.process.start_ticks:
        return None
    return parent
