"""The machine: the NVIDIA driver, the clock, the places that the agent and a Slurm gate share."""

from __future__ import annotations

import stat
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from peakgate.client.doctor.check import Check, State

RUN_FOLDER = Path("/run/peakgate")
"""Sockets of agent and gate, and the drop-in files of jobs."""

_OLDEST_BELIEVABLE_SECONDS = 1_735_689_600.0  # 2025-01-01 UTC: before this version was written


def node_checks(run_folder: Path = RUN_FOLDER) -> Iterator[Check]:
    """Driver, clock and sockets. A machine without a GPU is a submit host, not a fault."""
    yield _driver()
    yield _clock(time.time())
    for name in ("agent.sock", "gate.sock"):
        yield _socket(run_folder / name)


def _driver() -> Check:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # what the shim distribution says at import
            pynvml = import_module("pynvml")
    except ImportError:
        return Check(name="nvml", state=State.note, found="not asked: the module pynvml is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        remedy = "nothing to do on a machine without a GPU; on a GPU node install the NVIDIA driver and run nvidia-smi"
        return Check(name="nvml", state=State.note, found=f"not reachable: {error}", remedy=remedy)
    try:
        found = f"driver {pynvml.nvmlSystemGetDriverVersion()}, {pynvml.nvmlDeviceGetCount()} GPUs"
    except pynvml.NVMLError as error:
        return Check(name="nvml", state=State.bad, found=f"driver answers with {error}", remedy="run nvidia-smi; a lost GPU needs a reset")
    finally:
        pynvml.nvmlShutdown()
    return Check(name="nvml", state=State.ok, found=found)


def _clock(now_seconds: float) -> Check:
    found = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now_seconds))
    if now_seconds < _OLDEST_BELIEVABLE_SECONDS:
        return Check(name="clock", state=State.bad, found=f"{found} is in the past", remedy="start chrony or systemd-timesyncd")
    return Check(name="clock", state=State.ok, found=found)


def _socket(path: Path) -> Check:
    try:
        mode = path.stat().st_mode
    except OSError:
        return Check(name=path.name, state=State.note, found=f"{path} is not there; only a node that runs that part has it")
    if not stat.S_ISSOCK(mode):
        return Check(
            name=path.name, state=State.bad, found=f"{path} is no socket", remedy=f"remove {path} and start the part that makes it"
        )
    return Check(name=path.name, state=State.ok, found=str(path))
