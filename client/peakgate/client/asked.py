"""What a verb was asked about: jobs by their paths, and a launch command behind `--`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

PROGRAMS = (".sh", ".bash", ".py", ".sbatch", ".slurm")
"""Ends of names behind which words are a program's own."""


def jobs_and_command(words: Sequence[str], arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(paths, command) of a verb's `words` on a command line of these `arguments`.

    What stands behind `--` is a command, unless it is files, as it is for whoever guards names that begin like an option.
    """
    behind = list(arguments[list(arguments).index("--") + 1 :]) if "--" in arguments else []
    if not behind or _are_files(behind):
        return list(words), []
    return list(words[: len(words) - len(behind)]), behind


def _are_files(words: Sequence[str]) -> bool:
    first = Path(words[0])
    runs = len(words) > 1 and (first.suffix in PROGRAMS or os.access(first, os.X_OK))
    return not runs and all(Path(word).is_file() for word in words)
