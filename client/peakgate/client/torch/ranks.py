"""The ranks of a training share one prediction: rank 0 asks, the others take its answer from the store of the process group.

The store is a table beside the process group (torch/distributed/distributed_c10d.py, `_get_default_store`): no collective, so no
communicator is made for it, which would take memory on the GPU, and a rank that does not take part blocks nobody.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

RANK_VARIABLES = ("RANK", "SLURM_PROCID")
"""torchrun's and srun's, where no process group is open."""

SIZE_VARIABLES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""torchrun's and srun's."""

KEY = "peakgate/answer/{number}"


def rank() -> int:
    """Of this process; 0 where it is the only one."""
    group = _group()
    if group is not None:
        return int(group.get_rank())
    return _number_in(RANK_VARIABLES, 0)


def all_can_know() -> bool:
    """Whether each rank can be given rank 0's answer: there is one rank, or a process group. Otherwise the prediction's name stays off the
    reports, or it would be taken for that of rank 0's GPU alone."""
    return _group() is not None or _number_in(SIZE_VARIABLES, 1) == 1


def _number_in(variables: tuple[str, ...], default: int) -> int:
    return next((int(text) for name in variables if (text := os.environ.get(name, "")).isdecimal()), default)


def share(text: str, *, number: int) -> None:
    """Leaves rank 0's answer to the `number`-th training of this process for the others."""
    store = _store()
    if store is not None:
        store.set(KEY.format(number=number), text)


def shared(*, number: int, time_limit_seconds: float) -> str:
    """Rank 0's answer; empty where there is no process group. Raises what the store raises when it does not come in time."""
    store = _store()
    if store is None:
        return ""
    key = KEY.format(number=number)
    store.wait([key], timedelta(seconds=time_limit_seconds))
    return bytes(store.get(key)).decode()


def _group() -> Any:
    """torch.distributed with an open process group, or None."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def _store() -> Any:
    group = _group()
    return None if group is None or group.get_world_size() < 2 else group.distributed_c10d._get_default_store()  # noqa: SLF001 - no public name
