"""What reading a launch costs: CPU time of the slowest case of each format, when its modules are loaded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from tests.bench.walking import best_seconds
from tests.unit.readers.cases import FOLDERS, read_case


def format_of(folder: Path) -> str:
    """The format that a case is of."""
    return folder.parent.name


def slowest_cases() -> Iterator[tuple[str, str, float]]:
    """Of every format: its name, the name of its slowest case, and that case's CPU seconds, best of several."""
    for name, folders in groupby(FOLDERS, format_of):
        seconds = {folder.name: best_seconds(partial(read_case, folder)) for folder in folders}
        slowest = max(seconds, key=seconds.__getitem__)
        yield name, slowest, seconds[slowest]
