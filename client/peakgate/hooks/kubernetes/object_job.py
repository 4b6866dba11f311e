"""The job that an object of the API starts, and the same job on a card. No file is opened: what it names lies elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.hooks.kubernetes.admission import Admission
from peakgate.hooks.kubernetes.annotations import OWN_WORDS
from peakgate.hooks.kubernetes.candidates import Candidate, Cards
from peakgate.hooks.kubernetes.objects import Object, at
from peakgate.hooks.kubernetes.reading import read_object
from peakgate.v1.training_job_pb2 import TrainingJob


class Unreadable(Exception):  # noqa: N818 - what it is, not an error of anybody
    """An object that does not say what it trains, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectJob:
    """`is_partial`: a part of the launch is not in the object, so that what is not stated may stand there."""

    job: TrainingJob
    is_partial: bool = False


def job_of(whole: Object, beside: Sequence[Object] = ()) -> ObjectJob:
    """The job that an object's templates say, by the readers; `beside`: objects that it names, such as a runtime. Raises Unreadable."""
    kind, name = str(at(whole, "kind") or "object"), str(at(whole, "metadata", "name") or "")
    read = read_object(Admission(uid="", kind=kind, name=name, object=whole), beside)
    if read.job is None:
        raise Unreadable(f"{read.problem or 'it starts nothing'}; {OWN_WORDS}")
    return ObjectJob(job=read.job, is_partial=read.is_partial)


def counted(job: TrainingJob, cards: Cards) -> TrainingJob:
    """The job with its number of GPUs, where the readers see none because claims of devices or shares give them."""
    if job.gpu.count or job.parallelism.world_size or not cards.gpus:
        return job
    fitted = TrainingJob()
    fitted.CopyFrom(job)
    fitted.gpu.count = cards.gpus
    fitted.node.gpus = job.node.gpus or cards.pod_gpus
    return fitted


def on_card(job: TrainingJob, card: Candidate) -> TrainingJob:
    """The job on a card; stated bytes win over a name, as they do in the document."""
    fitted = TrainingJob()
    fitted.CopyFrom(job)
    fitted.gpu.ClearField("type")
    fitted.gpu.ClearField("memory_bytes")
    if card.gpu:
        fitted.gpu.type = card.gpu
    if card.memory_bytes:
        fitted.gpu.memory_bytes = card.memory_bytes
    return fitted
