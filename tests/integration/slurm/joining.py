"""A test cluster whose prolog and epilogs are the shipped ones, with a folder that stands for the driver's."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.programs import ROOT
from tests.integration.slurm.cluster import Slurm, cluster
from tests.integration.slurm.submit_host import SOURCES, STARTS

HOOK = ROOT / "deploy/slurm"
SECONDS = 30.0
UUID = "GPU-00000000-0000-4000-8000-00000000000{}"


@contextmanager
def joined_cluster(server: str) -> Iterator[Slurm]:
    """A cluster that tells the service at `server` how its jobs end."""
    with TemporaryDirectory(prefix="epilog-", dir="/tmp") as folder:
        epilog = Path(folder, "epilog")
        epilog.touch(0o755)
        Path(folder).chmod(0o755)
        with cluster(f"EpilogSlurmctld={epilog}") as slurm:
            (slurm.folder / "jobs").mkdir()
            _driver(slurm.folder / "driver")
            _install(slurm, slurm.folder / "prolog", "prolog.sh", server)
            _install(slurm, slurm.folder / "epilog", "epilog.sh", server)
            _install(slurm, epilog, "epilog.sh", server)
            yield slurm


def _driver(folder: Path) -> None:
    """What the driver says of each card (/proc/driver/nvidia/gpus/*/information)."""
    for number in range(8):
        path = folder / f"0000:0{number}:00.0" / "information"
        path.parent.mkdir(parents=True)
        path.write_text(f"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t {UUID.format(number)}\nDevice Minor: \t {number}\n")


def _install(slurm: Slurm, place: Path, name: str, server: str) -> None:
    """A script as it is shipped, with this test's folders, and this Python's command."""
    settings = f"PYTHONPATH={SOURCES} PEAKGATE_SERVER={server} SLURM_CONF={slurm.conf} PATH=/usr/bin:/bin"
    command = slurm.folder / "peakgate-of-slurm"
    command.write_text(f"#!/bin/sh\nexec env {settings} {sys.executable} -c '{STARTS}' \"$@\" 2>> {slurm.folder}/ended.log\n")
    command.chmod(0o755)
    text = (HOOK / name).read_text()
    for before, after in (
        ("JOBS=/run/peakgate/jobs", f"JOBS={slurm.folder}/jobs"),
        ("DRIVER=/proc/driver/nvidia/gpus", f"DRIVER={slurm.folder}/driver"),
        ("PEAKGATE=peakgate", f"PEAKGATE={command}"),
    ):
        text = text.replace(before, after)
    place.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\nexport SLURM_CONF={slurm.conf}\n", 1))
    place.chmod(0o755)


def drop_ins(slurm: Slurm) -> dict[str, dict[str, object]]:
    """The files that a prolog wrote: UUID to what they say."""
    return {path.stem: json.loads(path.read_text()) for path in (slurm.folder / "jobs").glob("*.json")}


def until(holds: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Waits; raises AssertionError with the words when it takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")
