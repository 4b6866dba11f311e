"""The job that an object of the API starts, and the same job on a card. No file is opened: what it names lies elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence

from peakgate.hooks.kubernetes.candidates import Candidate
from peakgate.hooks.kubernetes.facts import Object, mapping_at
from peakgate.readers.files import GivenFiles
from peakgate.readers.read import UnreadableError, read_file
from peakgate.v1.document import DocumentError, parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

MODEL_PATHS = ("model.hf_config", "model.profile")
"""Fields that a launch may fill with the path of a file."""


class Unreadable(Exception):  # noqa: N818 - what it is, not an error of anybody
    """An object that does not say what it trains, in words."""


def job_of(workload: Object, beside: Sequence[Object] = ()) -> TrainingJob:
    """The job that an object's templates say, by the readers; `beside`: objects that it names, such as a runtime. Raises Unreadable."""
    text = "\n---\n".join(json.dumps(_bare(each), indent=1) for each in (workload, *beside))
    try:
        reading = read_file("workload", GivenFiles({"workload": text}))
    except (UnreadableError, RecursionError, ValueError) as error:
        raise Unreadable(f"{str(error)[:300]}; state the job in the annotation peakgate.io/spec") from error
    document = reading.document()
    for path in MODEL_PATHS:
        if isinstance(document.get(path), str):
            raise Unreadable(f"{path} names a file, which is not read here: state its content in the annotation peakgate.io/spec")
    try:
        return parse_job(document)
    except DocumentError as error:
        raise Unreadable(f"what it states is no job: {str(error)[:300]}") from error


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


def _bare(workload: Object) -> dict[str, object]:
    metadata = {key: value for key, value in mapping_at(workload, "metadata").items() if key not in ("managedFields", "ownerReferences")}
    return {key: value for key, value in workload.items() if key != "status"} | {"metadata": metadata}
