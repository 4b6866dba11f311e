"""Wall time of `peakgate predict FILE` as a person waits for it: a fresh process, no server, the best of a few."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.bench.programs import PEAKGATE, ROOT, environment

ANSWERED = {0, 1, 3}  # ADMIT, REJECT, UNDECIDED


def cold_start_seconds(job: Path, *, tries: int = 3) -> float:
    """The best of the tries in seconds; raises RuntimeError when the command does not answer."""
    best = float("inf")
    for _ in range(tries):
        begin = time.perf_counter()
        done = subprocess.run(
            [str(PEAKGATE), "predict", str(job)], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )
        best = min(best, time.perf_counter() - begin)
        if done.returncode not in ANSWERED:
            raise RuntimeError(f"peakgate predict {job} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return best
