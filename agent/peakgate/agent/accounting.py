"""When the driver's accounting is asked, and about whom: each process once a minute while it lives, and at once when it has left.

The row of a process that has just ended may take the driver a moment, so it is asked again for some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import structlog

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_codes import NO_PERMISSION
from peakgate.agent.pace import Pace
from peakgate.agent.reactions import WHOLE_NODE
from peakgate.agent.samples import Accounted, Gpu

PERIOD_SECONDS = 60.0
"""The mode is lost when the driver is unloaded, so it is looked at as often."""
ASK_AGAIN_SECONDS = 3.0
"""How long the driver is asked for a process that has left, before its row counts as lost."""
NEEDS_ROOT = "Only root switches accounting on: run nvidia-smi --accounting-mode=1 as root, and leave --enable-accounting out"

log = structlog.get_logger("peakgate.agent.accounting")


@dataclass(frozen=True, slots=True)
class _Departed:
    gpu: Gpu
    pid: int
    until: float


class AccountingWatch:
    """Asks the driver for what it has accounted. `read` follows the process lists of a turn. Raises NvmlError for the whole node."""

    def __init__(self, *, nvml: Nvml, uniform: Callable[[float, float], float], switch_on: bool = False) -> None:
        self._nvml = nvml
        self._switch_on = switch_on
        self._pace = Pace(period_seconds=PERIOD_SECONDS, uniform=uniform)
        self._listed: dict[str, frozenset[int]] = {}
        self._departed: list[_Departed] = []
        self._said: set[tuple[str, int]] = set()
        self.accounting_gpus: frozenset[str] = frozenset()
        """Where the driver accounts, by UUID."""

    def see_list(self, gpu: Gpu, pids: Iterable[int], now: float) -> None:
        """The processes of a GPU now: who is missing since the last list has left."""
        present = frozenset(pids)
        gone = self._listed.get(gpu.uuid, frozenset()) - present
        self._listed[gpu.uuid] = present
        if gpu.uuid in self.accounting_gpus:
            self._departed += [_Departed(gpu, pid, now + ASK_AGAIN_SECONDS) for pid in sorted(gone)]

    def read(self, gpus: Iterable[Gpu], now: float) -> Iterator[tuple[Gpu, tuple[Accounted, ...]]]:
        """What is due now, by GPU."""
        living: list[tuple[Gpu, int]] = []
        if self._pace.is_due(now):
            self._pace.begin_next(now)
            gpus = tuple(gpus)
            self.accounting_gpus = frozenset(gpu.uuid for gpu in gpus if self._is_on(gpu))
            living = [(gpu, pid) for gpu in gpus for pid in sorted(self._listed.get(gpu.uuid, ())) if gpu.uuid in self.accounting_gpus]
        for gpu, pid in living:
            yield from self._ask(gpu, pid)
        waiting, self._departed = self._departed, []
        for departed in waiting:
            answers = tuple(self._ask(departed.gpu, departed.pid))
            yield from answers
            if not answers and now < departed.until:
                self._departed.append(departed)

    def forget(self, gpu: Gpu) -> None:
        """The GPU is gone."""
        self._listed.pop(gpu.uuid, None)
        self._departed = [departed for departed in self._departed if departed.gpu.uuid != gpu.uuid]

    def _is_on(self, gpu: Gpu) -> bool:
        try:
            if self._nvml.accounts(gpu):
                return True
            if self._switch_on:
                self._nvml.switch_accounting_on(gpu)
                return self._nvml.accounts(gpu)
        except NvmlError as error:
            self._note(gpu, error)
        return False

    def _ask(self, gpu: Gpu, pid: int) -> Iterator[tuple[Gpu, tuple[Accounted, ...]]]:
        try:
            found = self._nvml.accounted(gpu, pid)
        except NvmlError as error:
            self._note(gpu, error)
            return
        if found:
            yield gpu, (found,)

    def _note(self, gpu: Gpu, error: NvmlError) -> None:
        """A failure is logged once until it changes."""
        if error.reaction in WHOLE_NODE:
            raise error
        if (gpu.uuid, error.code) in self._said:
            return
        self._said.add((gpu.uuid, error.code))
        remedy = NEEDS_ROOT if error.code == NO_PERMISSION else error.remedy
        log.warning("accounting not read", gpu=gpu.uuid, problem=error.message, remedy=remedy)
