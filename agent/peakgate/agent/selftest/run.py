"""Runs every check; one that fails does not keep the others from running."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import cast

from peakgate.agent.errors import MissingPartError, NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_codes import LIB_RM_VERSION_MISMATCH
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.proc import ProcFolder
from peakgate.agent.reactions import Reaction
from peakgate.agent.selftest import card_checks, process_checks
from peakgate.agent.selftest.finding import Finding, failed, noted, passed
from peakgate.agent.selftest.node import Binding, Node

FIRST_CHECKS: tuple[Callable[[Node], Finding], ...] = (card_checks.versions, card_checks.gpus)
GPU_CHECKS: tuple[Callable[[Node], Finding], ...] = (
    card_checks.memory,
    process_checks.lists,
    process_checks.pids,
    process_checks.attributed,
    process_checks.accounting,
    card_checks.mig,
    card_checks.events,
    card_checks.call_times,
)
"""In the order in which a person would ask."""


def selftest(simulate: str | None = None) -> list[Finding]:
    """The checks on this node, or on a scenario of the simulated NVML. Raises UsageError or MissingPartError for a bad scenario."""
    if simulate:
        from peakgate.agent.simulated.library import simulate as begin

        begin(simulate)
    return list(findings())


def findings(
    *, proc: ProcFolder | None = None, wall: Callable[[], float] = time.time, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Finding]:
    """What each check finds. Without NVML there is one finding that says so."""
    try:
        module = load_pynvml()
    except MissingPartError as error:
        yield noted("binding", error.message, error.remedy)
        return
    yield binding()
    nvml = Nvml(module=module, clock=clock)
    try:
        driver = nvml.start()
    except NvmlError as error:
        yield _not_open(error)
        return
    try:
        yield passed("opens", f"driver {driver}")
        yield from _checked(nvml, cast("Binding", module), driver, proc=proc or ProcFolder(), wall=wall, clock=clock)
    except NvmlError as error:
        yield failed("gpus", error.message, error.remedy or "run nvidia-smi")
    finally:
        with contextlib.suppress(NvmlError):
            nvml.stop()


def _checked(
    nvml: Nvml, binding: Binding, driver: str, *, proc: ProcFolder, wall: Callable[[], float], clock: Callable[[], float]
) -> Iterator[Finding]:
    """What each check finds while NVML is open. Raises NvmlError when the GPUs cannot even be counted."""
    inventory = nvml.gpus()
    node = Node(
        binding=binding,
        nvml=nvml,
        driver=driver,
        gpus=inventory.gpus,
        complete=inventory.complete,
        proc=proc,
        wall=wall,
        clock=clock,
    )
    for check in (*FIRST_CHECKS, *(GPU_CHECKS if any(node.cards()) else ())):
        yield _run(check, node)


@cache
def binding() -> Finding:
    """Which file `import pynvml` is, and whose: the distribution of that name is a shim, and an old one hides NVIDIA's."""
    spec = find_spec("pynvml")
    owners = sorted(set(packages_distributions().get("pynvml", ())))
    seen = f"{spec.origin if spec else 'pynvml'} from {', '.join(owners) or 'no distribution'}"
    if owners == ["nvidia-ml-py"]:
        return passed("binding", f"{seen} {card_checks.installed_binding()}")
    return noted("binding", seen, "pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py")


def _run(check: Callable[[Node], Finding], node: Node) -> Finding:
    try:
        return check(node)
    except NvmlError as error:
        return failed(check.__name__.replace("_", " "), error.message, error.remedy or "run nvidia-smi; if it works there, report this")


def _not_open(error: NvmlError) -> Finding:
    if error.reaction is Reaction.no_driver:
        remedy = "nothing to do on a machine without a GPU; on a GPU node install the NVIDIA driver and run nvidia-smi"
        return noted("opens", f"no NVML on this machine, nothing was checked: {error.message}", remedy)
    if error.code == LIB_RM_VERSION_MISMATCH:
        return failed("opens", "the driver was updated under this library", "restart the programs that use the GPUs, or the machine")
    return failed("opens", error.message, error.remedy or "run nvidia-smi")
