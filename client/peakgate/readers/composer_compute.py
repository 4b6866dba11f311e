"""GPUs of a run of MosaicML's platform: `compute: {gpus: 8, gpu_type: a100_80gb}` (llm-foundry mcli/*.yaml)."""

from __future__ import annotations

from peakgate.readers.convert import positive
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings


def _card(stated: Stated) -> str | None:
    names = gpus_named(stated.text[:100])
    return names[0] if len(names) == 1 else None


ROWS = (
    Row("gpus", "gpu.count", positive),
    Row("gpus", "parallelism.world_size", positive),
    Row("gpu_type", "gpu.type", _card),
)


def state_compute(settings: Settings, reading: Reading) -> None:
    """States the GPUs in all, and the card where its name is one of the catalogue's."""
    apply(ROWS, settings, reading)
