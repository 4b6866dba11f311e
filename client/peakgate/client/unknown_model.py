"""A launch that names a model which no catalogue holds: the rest of the job is judged, and the answer asks for the model's sizes.

In a job document such a name is a mistake, and an error. A launch is right as it stands, and only its reader does not know the model: it
goes to the service as a config.json of which nothing but the name is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from peakgate.client.errors import PeakgateError
from peakgate.client.source import Source
from peakgate.v1.training_job_pb2 import Model, TrainingJob

Answer = TypeVar("Answer")

UNKNOWN = "MODEL_UNKNOWN"
HELP = "a line `#PEAKGATE model.hf_config=FOLDER` of a script does; a service takes further models from what PEAKGATE_MODELS names"


def settled(outcome: Answer | PeakgateError, source: Source, again: Callable[[TrainingJob], Answer]) -> Answer | PeakgateError:
    """The outcome of a source's job, or what `again` makes of the job without the models that are not known."""
    if not isinstance(outcome, PeakgateError) or not isinstance(source.job, TrainingJob):
        return outcome
    unnamed = without_unknown_models(source.job, outcome, source)
    try:
        return again(unnamed) if unnamed is not None else outcome
    except PeakgateError as error:
        return error


def ask(call: Callable[[TrainingJob], Answer], job: TrainingJob, source: Source) -> Answer:
    """The answer of `call` to the job, or to the same job without the models that it does not know. Raises PeakgateError."""
    try:
        return call(job)
    except PeakgateError as error:
        unnamed = without_unknown_models(job, error, source)
        if unnamed is None:
            raise
        return call(unnamed)


def without_unknown_models(job: TrainingJob, error: PeakgateError, source: Source) -> TrainingJob | None:
    """The job with a config.json that holds the name alone for each model of `error`, and a sentence on each in `unread`.

    None when the error is another one, or when a model is named by the submitter's own words and not by the launch.
    """
    if error.reason != UNKNOWN or source.launch is None:
        return None
    reading, unnamed = source.launch.reading, TrainingJob()
    unnamed.CopyFrom(job)
    for path, description in error.fields:
        stated = reading.fields.get(path)
        if stated is None or path in reading.own:
            return None
        unnamed.unread.append(f"{description}, {HELP} ({stated.place})")
        model = _model(unnamed, path)
        model.hf_config["_name_or_path"] = model.preset
    return unnamed


def _model(job: TrainingJob, path: str) -> Model:
    """The model whose preset a path names: the trained one, or another of the method."""
    return job.model if path == "model.preset" else getattr(job.method, path.split(".")[1])
