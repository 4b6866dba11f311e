"""A job of Slurm's accounting, in whichever form sacct wrote it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its tasks, its GPUs and nodes (0: not said), and the highest memory of one task with that one's node and number.

    With the number -1 it is the highest memory of a node (man sacct, TresUsageInMax).
    """

    name: str
    tasks: int
    gpus: int
    nodes: int
    gpu_memory_bytes: int
    node: str
    task: str

    @property
    def is_of_node(self) -> bool:
        """Whether the figure is a node's and not a task's."""
        return self.task == "-1"

    @property
    def shares(self) -> int:
        """Over how many tasks, or nodes, the GPUs of the step are spread."""
        return self.nodes if self.is_of_node else self.tasks


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
