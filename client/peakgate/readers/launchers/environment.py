"""Environment variables that say something of GPUs and of the allocator."""

from __future__ import annotations

import re

from peakgate.readers.launchers.resources import Count, count_of
from peakgate.readers.launchers.state import Peel
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading

ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""c10/core/AllocatorConfig.cpp; the first is the name since PyTorch 2.9."""

_EXPANDABLE = re.compile(r"expandable_segments\s*:\s*(true|false)", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,3})-(\d{1,3})$")


def note_environment(peel: Peel) -> None:
    """CUDA_VISIBLE_DEVICES counts where no flag of a launcher says it; NPROC_PER_NODE and NNODES are read by programs that start their own
    processes (swift/cli/main.py, llamafactory/launcher.py), not by the launchers above."""
    visible = peel.environment("CUDA_VISIBLE_DEVICES")
    if visible is not None and peel.resources.visible is None:
        peel.resources.visible = _devices(visible)
    if peel.words[0].text.rpartition("/")[2] in SELF_STARTING and peel.resources.world() is None:
        peel.resources.processes_per_node = count_of(peel.environment("NPROC_PER_NODE"))
        peel.resources.process_nodes = count_of(peel.environment("NNODES"))


SELF_STARTING = frozenset({"swift", "llamafactory-cli", "lmf", "megatron"})


def _devices(stated: Stated) -> Count | None:
    """How many devices a list names: `0,1,2`, UUIDs, `0-3` of some sites; -1 ends it, and a variable of the run says nothing."""
    names = [name.strip() for name in stated.text[:10_000].split(",")]
    if stated.text.startswith("$") or not names[0]:
        return None
    if len(names) == 1 and (match := _RANGE.match(names[0])):
        return count_of(Stated(str(int(match[2]) - int(match[1]) + 1), stated.place))
    used = names[: names.index("-1")] if "-1" in names else names
    return Count(len(used), stated.place) if used else None


def state_environment(peel: Peel, reading: Reading) -> None:
    """What the allocator is told."""
    for name in reversed(ALLOCATOR):
        stated = peel.environment(name)
        match = _EXPANDABLE.search(stated.text[:2000]) if stated is not None else None
        if match and stated is not None:
            place = Place(kind=stated.place.kind, key=name, file=stated.place.file, line=stated.place.line)
            reading.fields.pop("framework.expandable_segments", None)
            reading.state("framework.expandable_segments", match[1].lower() == "true", place)
