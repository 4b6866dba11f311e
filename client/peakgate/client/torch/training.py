"""One training: a prediction before its step 0, then reports. What every framework's callback is made of."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import ClassVar, Literal

from peakgate.client.torch import ranks
from peakgate.client.torch.ask import REJECT, TIME_LIMIT_SECONDS, Answer, NoAnswerError, answer_of, ask
from peakgate.client.torch.batches import NOTHING, Shape
from peakgate.client.torch.reporter import Reporter

GRACE_SECONDS = 10.0
"""How much longer than rank 0 the other ranks wait for its answer: they may come to their first batch before it."""

OnReject = Literal["warn", "raise"]
ReadJob = Callable[[Shape], Mapping[str, object]]
"""From the shape of the first batch to the job document."""


class RejectedError(RuntimeError):
    """The job does not fit, and the caller wants to end then (`on_reject="raise"`)."""


class Training:
    """`read_job` is called once, on rank 0, with the first batch. The answer is one line on its standard error, and its name goes with the
    reports. All that fails is one line too; only a rejection may be raised, where `on_reject` says so.

    A training waits for the prediction, once, and at most `time_limit_seconds` (a rank other than 0: GRACE_SECONDS more).
    """

    _numbers: ClassVar[Iterator[int]] = count()

    def __init__(
        self,
        read_job: ReadJob,
        *,
        predict: bool = True,
        on_reject: OnReject = "warn",
        time_limit_seconds: float = TIME_LIMIT_SECONDS,
        reset_peaks: bool = False,
        reporter: Reporter | None = None,
    ) -> None:
        if on_reject not in ("warn", "raise"):
            raise ValueError(f"on_reject {on_reject!r}: use warn or raise")
        self._read_job = read_job
        self._is_asked = not predict
        self._raises = on_reject == "raise"
        self._time_limit_seconds = time_limit_seconds
        self._number = next(self._numbers)
        self.reporter = reporter or Reporter(reset_peaks=reset_peaks)
        self.answer: Answer | None = None
        """The prediction, once it is there."""
        self.waited_seconds = 0.0
        """How long the training has waited for it."""

    def batch(self, shape: Shape = NOTHING) -> None:
        """A batch is about to be used. Before the first one the prediction is asked for."""
        if shape.micro_batch:
            self.reporter.saw(shape.sequence_length, shape.micro_batch)
        if not self._is_asked:
            self._is_asked = True
            with self.unharmed():
                self._predict(shape)

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """What goes wrong inside is told and does not reach the training; a rejection that is to be raised does."""
        try:
            yield
        except RejectedError:
            raise
        except Exception as error:  # noqa: BLE001 - a training must not end because somebody watches it
            self.reporter.failed(error)

    def _predict(self, shape: Shape) -> None:
        began = time.monotonic()
        self.answer = self._asked(shape) if ranks.rank() == 0 else self._taken()
        self.waited_seconds = time.monotonic() - began
        if self.answer is None:
            return
        if ranks.all_can_know():
            self.reporter.prediction = self.reporter.prediction or self.answer.prediction
        if self._raises and self.answer.verdict == REJECT:
            raise RejectedError(f"peakgate: {self.answer.reason}")

    def _asked(self, shape: Shape) -> Answer | None:
        answer = None
        try:
            answer = ask(self._read_job(shape), time_limit_seconds=self._time_limit_seconds)
            say(f"{answer.verdict}: {answer.reason}")
        except Exception as error:  # noqa: BLE001 - a model that cannot be read is no reason to end its training
            say(f"no prediction, the training goes on: {error if isinstance(error, NoAnswerError) else repr(error)}")
        ranks.share(answer.text() if answer else "", number=self._number)
        return answer

    def _taken(self) -> Answer | None:
        text = ranks.shared(number=self._number, time_limit_seconds=self._time_limit_seconds + GRACE_SECONDS)
        return answer_of(text) if text else None


def say(line: str) -> None:
    """One line on standard error, where a training's log goes."""
    sys.stderr.write(f"peakgate: {line}\n")
    sys.stderr.flush()
