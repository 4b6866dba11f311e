"""The allocator's peaks of this process, by phase of the step, for the agent of this node.

    with reporter.phase("forward"):
        loss = model(batch).loss
    reporter.step()

Nothing here raises into a training, waits, or changes what `torch.cuda.max_memory_allocated` prints (but for `reset_peaks=True`). Without
an agent the datagrams go nowhere.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ClassVar, Concatenate, ParamSpec

from peakgate.client.torch.allocator import Cuda, CudaAllocator, Figures, allocator_conf, is_out_of_memory
from peakgate.client.torch.courier import Courier
from peakgate.client.torch.growth import NOTHING, Growth
from peakgate.client.torch.telling import INTERVAL_SECONDS, State, Telling
from peakgate.v1.allocator_report import PHASES, PREDICTION_VARIABLE, AllocatorReport, encode

_P = ParamSpec("_P")


def _quiet(method: Callable[Concatenate[Reporter, _P], None]) -> Callable[Concatenate[Reporter, _P], None]:
    """What goes wrong inside is told once, on one line, and is never the training's trouble."""

    @wraps(method)
    def guarded(self: Reporter, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - a training must not end because somebody watched it
            self.failed(error)

    return guarded


class Reporter:
    """One a training, process and GPU.

    `device` is the one that is current when memory is first held; `prediction` defaults to PEAKGATE_PREDICTION. Observe-only: global peaks,
    each growth attributed to the phase that it happened in. `reset_peaks=True` resets torch's peak statistics at every phase, so that each
    phase has its exact peak and the program's own readings of `max_memory_*` are lost.
    """

    _pid: int
    _steps: int
    _largest: tuple[int, int]
    """Tokens of the largest batch, and the length of its sequences."""
    _raised_ooms: int
    _last_error: int
    _outside: str
    """The phase of what happens between phases."""
    _closed: bool
    _made: ClassVar[tuple[int, int]] = (0, 0)
    """The process, and how many reporters were made in it: what it held before the first one is that training's own loading."""

    def __init__(
        self,
        *,
        device: int | None = None,
        prediction: str | None = None,
        reset_peaks: bool = False,
        socket_path: str | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
        cuda: Cuda | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allocator = CudaAllocator(device=device, cuda=cuda)
        self._reset_peaks = reset_peaks
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._courier = Courier(path=socket_path)
        self._conf = allocator_conf()
        self.failures = 0
        """Errors in here, which the training has not seen."""
        self._begin()
        self.prediction = self._inherited() if prediction is None else prediction
        """May be set later, when the answer is there."""
        atexit.register(self.close)

    @property
    def steps_done(self) -> int:
        """Optimizer steps."""
        return self._steps

    @property
    def dropped(self) -> int:
        """Datagrams that no agent took."""
        return self._courier.dropped

    def phase(self, name: str) -> Phase:
        """A part of the step, as a context: load forward loss backward optimizer evaluate save."""
        return Phase(self, name)

    @_quiet
    def passed(self, name: str) -> None:
        """What happened since the last call belonged to this phase: for hooks, which know only where a phase ends. Empty: to none."""
        with self._own_lock():
            self._take(name)
            self._outside = ""
            self._send_if_due()

    @_quiet
    def outside(self) -> None:
        """A phase begins: what happened before it is loading until the first phase has passed, then nothing's."""
        with self._own_lock():
            self._last_error = 0
            self._take(self._outside)

    @_quiet
    def step(self) -> None:
        """An optimizer step is done."""
        with self._own_lock():
            self._steps += 1
            self._take("")
            self._outside = ""
            self._send_if_due()

    @_quiet
    def saw(self, sequence_length: int, micro_batch: int = 1) -> None:
        """A batch, padding included. Kept is the length of the one with the most tokens."""
        with self._own_lock():
            self._largest = max(self._largest, (sequence_length * micro_batch, sequence_length))

    @_quiet
    def out_of_memory(self, error: BaseException) -> None:
        """An allocation has failed: told at once, since nothing may come after it. The same error counts once, through nested phases."""
        with self._own_lock():
            if id(error) == self._last_error:
                return
            self._last_error = id(error)
            self._raised_ooms += 1
            self._take("")
            self._send_if_due()

    @_quiet
    def close(self) -> None:
        """The last datagram. Called at the end of the process as well."""
        if self._closed and self._pid == os.getpid():
            return
        with self._own_lock():
            self._take("")
            if self._telling.is_news(self._state()):
                self._send()
            self._courier.close()
            self._closed = True
        atexit.unregister(self.close)

    def failed(self, error: Exception) -> None:
        """Counts what went wrong in here; the first one is told on standard error."""
        self.failures += 1
        if self.failures == 1:
            sys.stderr.write(f"peakgate: reporting this process's memory failed, the training goes on: {type(error).__name__}: {error}\n")

    def _begin(self) -> None:
        """State of this process: a forked child begins anew."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._growth = Growth(before=self._reached_before())
        self._steps, self._largest = 0, (0, 0)
        self._raised_ooms, self._last_error = 0, 0
        self._outside, self._closed = "load", False
        self._telling = Telling(interval_seconds=self._interval_seconds, clock=self._clock)
        self._gpu_uuid, self._backend = "", ""

    def _inherited(self) -> str:
        """The prediction that the submission stamped on the job: it is of the first training of the process and of no other."""
        return os.environ.get(PREDICTION_VARIABLE, "") if not self._training else ""

    def _reached_before(self) -> Figures:
        """What another training of this process has left behind."""
        pid, made = Reporter._made
        self._training = made if pid == self._pid else 0
        Reporter._made = self._pid, self._training + 1
        try:
            return (self._allocator.read() if self._training else None) or NOTHING
        except Exception as error:  # noqa: BLE001 - a training must not end because somebody watches it
            self.failed(error)
            return NOTHING

    def _own_lock(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._begin()
        return self._lock

    def _take(self, phase: str) -> None:
        figures = self._allocator.read()
        if figures is None:
            return
        if phase and phase not in PHASES:
            raise ValueError(f"phase {phase!r} is not one of {' '.join(PHASES)}")
        if not self._reset_peaks:
            self._growth.see(figures, phase)
            return
        self._growth.see_exact(figures, phase)
        self._allocator.reset_peaks()

    def _state(self) -> State:
        return State(self._growth.version, self._largest[1], self._ooms(), self._steps)

    def _ooms(self) -> int:
        """What the allocator has counted, or what went through the phases: cudaMallocAsync counts none."""
        return max(self._growth.ooms, self._raised_ooms)

    def _send_if_due(self) -> None:
        if self._telling.is_due(self._state()):
            self._send()

    def _send(self) -> None:
        figures = self._growth.figures
        if not (figures.reserved_bytes or self._ooms()):
            return  # nothing on a GPU, or nothing of this training's
        if not self._gpu_uuid:
            self._gpu_uuid, self._backend = self._allocator.uuid(), self._allocator.backend()
        self._courier.send(encode(self._report(figures)))
        self._telling.note(self._state())

    def _report(self, figures: Figures) -> AllocatorReport:
        return AllocatorReport(
            gpu_uuid=self._gpu_uuid,
            allocated_bytes=figures.allocated_bytes,
            reserved_bytes=figures.reserved_bytes,
            retries=figures.retries,
            ooms=self._ooms(),
            steps_done=self._steps,
            longest_sequence=self._largest[1],
            training=self._training,
            phases=self._growth.phases,
            backend=self._backend,
            conf=self._conf,
            prediction=self.prediction,
        )


class Phase:
    """`Reporter.phase`: an exception goes through untouched; an out-of-memory error is told first."""

    __slots__ = ("_name", "_reporter")

    def __init__(self, reporter: Reporter, name: str) -> None:
        self._reporter = reporter
        self._name = name

    def __enter__(self) -> None:
        self._reporter.outside()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._reporter.passed(self._name)
        if kind is not None and error is not None and is_out_of_memory(kind):
            self._reporter.out_of_memory(error)
