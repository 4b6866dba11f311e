"""What the running process knows beside the job: versions of libraries that it has loaded, the card, the number of ranks."""

from __future__ import annotations

import sys

from peakgate.client.live.plain import attribute, place
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.reading import Reading


def state_surroundings(reading: Reading, *, gpu: str, world_size: int) -> None:
    """Versions, card and ranks; what is named by the caller wins."""
    for library, path in (("transformers", "framework.version"), ("torch", "framework.torch")):
        version = str(attribute(sys.modules.get(library), "__version__") or "").partition("+")[0]
        if version and (path == "framework.torch" or reading.get("framework.name") == "huggingface"):
            reading.state(path, version, place(library, "__version__"))
    if gpu:
        reading.state("gpu.type", gpu, place("gpu"))
    else:
        _state_card(reading)
    if world_size > 1:
        reading.state("parallelism.world_size", world_size, place("world_size"))


def _state_card(reading: Reading) -> None:
    """The first card that PyTorch sees, where it is loaded and sees one."""
    cuda = attribute(sys.modules.get("torch"), "cuda")
    seen = getattr(cuda, "is_available", None)
    ask = getattr(cuda, "get_device_properties", None)
    if not callable(seen) or not callable(ask) or not seen():
        return
    card = ask(0)
    names, size = gpus_named(str(attribute(card, "name") or "")), attribute(card, "total_memory")
    where = place("torch.cuda.get_device_properties(0)")
    if len(names) == 1:
        reading.state("gpu.type", names[0], where)
    if isinstance(size, int):
        reading.state("gpu.memory_bytes", size, where)


def ranks() -> int:
    """Ranks of the process group that is open; 1 without one."""
    group = attribute(sys.modules.get("torch"), "distributed")
    is_open, size = getattr(group, "is_initialized", None), getattr(group, "get_world_size", None)
    return int(size()) if callable(is_open) and callable(size) and is_open() else 1
