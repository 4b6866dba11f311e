"""What the command tells the agent: its options by name, before any of them is looked at.

`peakgate agent`, `python -m peakgate.agent` and `start` all take these; options.py says what follows from those that are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired, TypedDict


class Told(TypedDict):
    """As `run_agent` (main.py) describes them."""

    server: str
    simulate: str | None
    node: str | None
    cluster: str
    spool: Path | None
    once: bool
    duration_seconds: float | None
    transport: str
    metrics_port: int | None
    interval_seconds: float
    control: NotRequired[Path | None]
    record: NotRequired[Path | None]
    enable_accounting: NotRequired[bool]
    dcgm_jobs: NotRequired[Path | None]
    gpu_numbers: NotRequired[str]
    helper_socket: NotRequired[Path | None]


PATHS = ("spool", "control", "record", "dcgm_jobs", "helper_socket")
"""The options that are paths, for whoever has them as text."""
