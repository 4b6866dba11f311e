"""NVML calls one at a time: timed, counted, with our own errors, and with a memory of what a device or a driver lacks."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_codes import UNKNOWN
from peakgate.agent.nvml_module import NvmlModule
from peakgate.agent.reactions import Reaction, rule_of

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class CallStatistics:
    """Wall time and number of the NVML calls, by function, and the failures by (function, code)."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    errors: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))


class Calls:
    """Every call of NVML goes through here. Raises NvmlError and nothing else. Any thread may call."""

    def __init__(self, *, module: NvmlModule, clock: Callable[[], float] = time.perf_counter) -> None:
        self._module = module
        self._clock = clock
        self._lock = threading.Lock()
        self._lacking: set[tuple[str, str]] = set()
        self._version: dict[str, int] = {}
        self.statistics = CallStatistics()

    def call(self, function: Callable[P, T], gpu: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """One call about a GPU (its UUID, or empty for the whole node); one whose answer outgrew its buffer is made once more."""
        try:
            return self._timed(function, gpu, *args, **kwargs)
        except NvmlError as error:
            if rule_of(error.code).reaction is not Reaction.once_more:
                raise
        return self._timed(function, gpu, *args, **kwargs)

    def newest(
        self, versions: Sequence[Callable[Concatenate[object, P], T]], gpu: str, handle: object, /, *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """The newest of these versions of a function that the driver has; None: the driver or this device has none of them."""
        name = _name(versions[0])
        if (gpu, name) in self._lacking:
            return None
        for place in range(self._version.get(name, 0), len(versions)):
            try:
                return self.call(versions[place], gpu, handle, *args, **kwargs)
            except NvmlError as error:
                if error.reaction is Reaction.never_again:
                    self._lacking.add((gpu, name))
                    return None
                if error.reaction is not Reaction.older_call:
                    raise
                self._version[name] = place + 1
        return None

    def forget(self) -> None:
        """Another driver may come: what the last one lacked is asked again."""
        self._lacking.clear()
        self._version.clear()

    def untimed(self, function: Callable[P, T], gpu: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that waits by design and therefore costs nothing; its failures are not counted."""
        return translated(self._module, function, gpu, *args, **kwargs)

    def _timed(self, function: Callable[P, T], gpu: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        name, failed = _name(function), 0
        started = self._clock()
        try:
            return self.untimed(function, gpu, *args, **kwargs)
        except NvmlError as error:
            failed = error.code
            raise
        finally:
            with self._lock:
                self.statistics.seconds[name] += self._clock() - started
                self.statistics.calls[name] += 1
                if failed:
                    self.statistics.errors[name, failed] += 1


def translated(module: NvmlModule, function: Callable[P, T], gpu: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
    """A plain call of pynvml about a GPU (its UUID, or empty). Raises NvmlError in place of pynvml's own exceptions."""
    try:
        return function(*args, **kwargs)
    except module.NVMLError as error:
        code = int(getattr(error, "value", UNKNOWN))
        raise NvmlError(function=_name(function), code=code, gpu=gpu, detail=str(error)) from error


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", "nvml")
