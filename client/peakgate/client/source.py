"""One job of the input, with where it stands and what it was read from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peakgate.client.checkpoint import Counted, warn
from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.origin import Origin
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

if TYPE_CHECKING:
    from peakgate.readers.files import Files
    from peakgate.readers.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """A launch with what a reader made of it. `command`: its text when it is a command line, else empty."""

    reading: Reading
    files: Files
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One job of the input, or why it is none. `label` says where it stands, `origin` where each field does that a launch states."""

    label: str
    job: TrainingJob | PeakgateError
    origin: Origin | None = None
    counted: Counted | None = None
    """What the files of a checkpoint hold whose config.json the job names."""
    launch: LaunchText | None = None
    """What it was read from, for whoever writes a suggestion back."""

    def on(self, gpu: str | None) -> Source:
        """The same on the catalogue's card `gpu`, when that is named."""
        origin = self.origin.without("gpu.type", "gpu.memory_bytes") if gpu and self.origin else self.origin
        return replace(self, job=on_gpu(self.job, gpu), origin=origin)

    def checked(self, answer: PredictResponse) -> PredictResponse:
        """The answer, with a warning when the model's config and the files beside it are not of one model."""
        if isinstance(self.job, TrainingJob):
            warn(answer, self.job, self.counted)
        return answer

    def required(self) -> TrainingJob:
        """The job. Raises the error that stands in its place."""
        if isinstance(self.job, PeakgateError):
            raise self.job
        return self.job


def on_gpu(job: TrainingJob | PeakgateError, gpu: str | None) -> TrainingJob | PeakgateError:
    """The job on the catalogue's card `gpu` instead of the stated one, or what could be read of one; unchanged without a card."""
    readable = job.readable if isinstance(job, InputError) else job
    if gpu and isinstance(readable, TrainingJob):
        readable.gpu.type = gpu
        readable.gpu.ClearField("memory_bytes")  # stated bytes would win over the name
    return job
