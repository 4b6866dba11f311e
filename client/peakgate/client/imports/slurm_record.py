"""A job of Slurm's accounting, in whichever form sacct wrote it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its tasks, its GPUs (0: not said), and the highest memory of one of its tasks with the node and number of that one."""

    name: str
    tasks: int
    gpus: int
    gpu_memory_bytes: int
    node: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One job of the accounting. Times are seconds since the epoch, 0 where there is none; `restart` is None when it is not said."""

    cluster: str
    job: str
    event: str
    start_time: float
    end_time: float
    restart: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    gpus: int = 0
    comments: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    problem: str = ""
