"""Runs the command as a person or a script does: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PEAKGATE = Path(sys.executable).with_name("peakgate")
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Done:
    """What a run left: exit status and both streams."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Standard output as JSON Lines; fails when anything else is on it."""
        return [json.loads(line) for line in self.out.splitlines()]


def peakgate(*arguments: object, stdin: str | bytes = b"", folder: Path | None = None, **environment: str) -> Done:
    """Runs `peakgate` with these arguments and no settings but `environment`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PEAKGATE_")}
    done = subprocess.run(
        [str(PEAKGATE), *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        cwd=folder,
        env=clean | environment,
        timeout=100,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
