"""Whether a launch starts as many processes as its degrees of parallelism need: what no reader sees alone, because launchers say the one
and the program's own settings the other."""

from __future__ import annotations

from math import prod

from peakgate.readers.reading import Reading

WORLDS = ("parallelism.world_size", "gpu.count")
"""Where the number of processes stands, the surest first."""

MODEL_DEGREES = ("parallelism.tensor", "parallelism.pipeline", "parallelism.context")
"""Degrees whose product divides the world (the rest is data parallelism)."""


def warn_of_degrees(reading: Reading) -> None:
    """A warning that names both places when the world is no multiple of the degrees' product."""
    world = next((path for path in WORLDS if path in reading.fields), None)
    degrees = {path: size for path in MODEL_DEGREES if isinstance(size := reading.get(path), int) and size > 1}
    product = prod(degrees.values())
    size = reading.get(world) if world is not None else None
    if world is None or not isinstance(size, int) or size % product == 0:
        return
    stated = " × ".join(f"{path.partition('.')[2]} {degree} ({reading.fields[path].place})" for path, degree in degrees.items())
    reading.warnings.append(f"{world}: {size} ({reading.fields[world].place}) is no multiple of {stated}")
