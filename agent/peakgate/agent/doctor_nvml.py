"""Check-up of what NVML says: the driver, and of each GPU whether its figures can be had."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from peakgate.agent.errors import NvmlError
from peakgate.agent.finding import Finding, judged
from peakgate.agent.nvml import Nvml
from peakgate.agent.proc import ProcFolder
from peakgate.agent.reactions import Reaction
from peakgate.agent.samples import Gpu

ODD_DRIVERS = ((535, 43), (535, 85))
ODD_PACKAGE = (12, 535, 77)
"""Drivers 535.43 to 535.85 list processes in a structure of their own, which only nvidia-ml-py 12.535.77 reads (gpustat, issues 157 and
161)."""
_ACCOUNT = "as root: nvidia-smi --accounting-mode=1 (or the agent's --enable-accounting), to have exact peaks; lost when the driver unloads"
_PERSIST = "start nvidia-persistenced: else the driver unloads with the last program and forgets the accounting mode"
_HOST_PIDS = "run the agent with the host's process ids (hostPID: true, --pid=host): without them no process can be given to a job"


def nvml_findings(nvml: Nvml, proc: ProcFolder) -> Iterator[Finding]:
    """All of them; a node without a driver is one note."""
    try:
        driver = nvml.start()
    except NvmlError as error:
        is_absent = error.reaction is Reaction.no_driver
        yield Finding(name="driver", state="note" if is_absent else "bad", found=error.message, remedy=error.remedy)
        return
    try:
        yield driver_finding(driver, _package())
        gpus = nvml.gpus()
        if not gpus.complete:
            remedy = "run nvidia-smi; a lost GPU needs a reset"
            yield Finding(name="gpus", state="bad", found="at least one GPU does not answer", remedy=remedy)
        for gpu in gpus.gpus:
            yield from _gpu_findings(nvml, gpu)
        yield _host_pids(nvml, gpus.gpus, proc)
    except NvmlError as error:
        yield Finding(name="nvml", state="bad", found=error.message, remedy=error.remedy)
    finally:
        nvml.stop()


def driver_finding(driver: str, package: str) -> Finding:
    """The driver's version, and whether this nvidia-ml-py reads its process lists."""
    found = f"{driver} with nvidia-ml-py {package or 'of unknown version'}"
    is_odd_driver = ODD_DRIVERS[0] <= _numbers(driver)[:2] <= ODD_DRIVERS[1]
    is_odd_package = _numbers(package)[:3] == ODD_PACKAGE
    fits = is_odd_driver == is_odd_package
    remedy = "update the driver to 535.86 or newer" if is_odd_driver else "pip install --upgrade nvidia-ml-py"
    return judged(name="driver", is_good=fits, found=found if fits else f"{found}: processes are misread", remedy=remedy)


def _gpu_findings(nvml: Nvml, gpu: Gpu) -> Iterator[Finding]:
    used = nvml.used_bytes(gpu)
    processes = nvml.processes(gpu)
    if used is None and processes is None:
        yield Finding(name="memory", state="bad", found=f"{gpu.uuid} ({gpu.name}) does not tell its memory", remedy="it cannot be watched")
        return
    unknown = [process.pid for process in processes or () if process.used_bytes is None]
    if unknown:
        found = f"{gpu.uuid}: no figure for {len(unknown)} of {len(processes or ())} processes"
        yield Finding(name="memory", state="note", found=found, remedy="jobs that have the GPU to themselves are still measured")
    else:
        yield Finding(name="memory", state="ok", found=f"{gpu.uuid} ({gpu.name}): {used} bytes in use, {len(processes or ())} processes")
    if gpu.instance is not None:
        yield Finding(name="accounting", state="note", found=f"{gpu.uuid} is a MIG instance: NVIDIA's accounting does not work there")
        return
    is_on = nvml.accounts(gpu)
    yield judged(name="accounting", is_good=is_on, found=f"{gpu.uuid}: {_on(is_on)}", remedy=_ACCOUNT, otherwise="note")
    is_persistent = nvml.is_persistent(gpu)
    if is_persistent is not None:
        found = f"{gpu.uuid}: {_on(is_persistent)}"
        yield judged(name="persistence", is_good=is_persistent, found=found, remedy=_PERSIST, otherwise="note")


def _host_pids(nvml: Nvml, gpus: tuple[Gpu, ...], proc: ProcFolder) -> Finding:
    """Whether the driver speaks of the processes that /proc shows."""
    pids = {process.pid for gpu in gpus for process in nvml.processes(gpu) or ()}
    strangers = sorted(pid for pid in pids if proc.start_ticks(pid) is None)
    if strangers:
        found = f"NVML lists {len(strangers)} of {len(pids)} processes that /proc does not show, such as {strangers[0]}"
        return Finding(name="pids", state="bad", found=found, remedy=_HOST_PIDS)
    return Finding(name="pids", state="ok", found=f"/proc shows all {len(pids)} processes that NVML lists")


def _package() -> str:
    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _on(is_on: bool) -> str:  # noqa: FBT001 (a word for a truth)
    return "on" if is_on else "off"
