"""A predicted job -> the subject that the calibration knows it as, and both as text for the store. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from peakgate.calibration import Observation, Subject
from peakgate.calibration.calibrator import KEYS_FORMAT
from peakgate.memory.check import world_of
from peakgate.memory.defaults import default_of
from peakgate.memory.job import Job
from peakgate.memory.prediction import Prediction
from peakgate.memory.versions import version_of
from peakgate.server.memory import Capacity

ACTIVATIONS = ("activations", "logits")
STATES = ("parameters", "gradients", "master_weights", "optimizer_states")
"""Ledger categories that a residual may depend on."""

UNKNOWN_GPU = "unknown"

FIRST_FORMAT = 2
"""Of observations that do not say it."""

MINOR_CHARACTERS, VERSION_CHARACTERS = 16, 64
"""Of stated versions that are kept: in a name, and to tell whether one is new."""


def subject_of(prediction: Prediction, job: Job, capacity: Capacity | None, *, user: str = "") -> Subject:
    """The worst GPU of a predicted job.

    Its prior of the runtime is what is required beyond the blocks in use: the context, communicators and libraries outside the
    allocator, and the gaps that the allocator cannot do without.
    """
    return Subject(
        group=group_key(prediction.group, job, capacity),
        framework=framework_key(prediction.group, job),
        version=_version(job),
        user=user,
        card_bytes=capacity.total_bytes if capacity is not None else 0,
        required_bytes=prediction.required_bytes,
        device_bytes=prediction.device_bytes,
        runtime_bytes=max(0, prediction.required_bytes - prediction.allocated_bytes),
        activation_bytes=_bytes_of(prediction, ACTIVATIONS),
        state_bytes=_bytes_of(prediction, STATES),
    )


def framework_key(kind: str, job: Job) -> str:
    """Name with minor version, and how states are sharded: `huggingface-4.55/fsdp`. `kind`: a prediction's group."""
    name, sharding = kind.split("/")[:2]
    if name == "textbook":
        return name
    minor = ".".join(str(part) for part in version_of(job.framework.version)[:2])[:MINOR_CHARACTERS]
    return f"{name}-{minor}/{sharding}" if minor else f"{name}/{sharding}"


def group_key(kind: str, job: Job, capacity: Capacity | None) -> str:
    """The card, the framework, and what else moves the runtime: `h100-80gb/huggingface-4.55/fsdp/one node/compiled`."""
    gpu = capacity.gpu if capacity is not None and capacity.gpu else UNKNOWN_GPU
    nodes = "one node" if world_of(job) <= (job.node.gpus or int(default_of("*", "node.gpus").value)) else "several nodes"
    words = ("expandable segments" if _is_expandable(kind, job) else "", "compiled" if job.framework.compile else "")
    return "/".join((gpu, framework_key(kind, job), nodes, *(word for word in words if word)))


def scaled(subject: Subject, *, required_bytes: int) -> Subject:
    """The same job at another size: its activations and states grow with what it requires, its runtime does not."""
    counted = max(1, subject.required_bytes - subject.runtime_bytes)
    factor = max(0, required_bytes - subject.runtime_bytes) / counted
    return replace(
        subject,
        required_bytes=required_bytes,
        device_bytes=max(required_bytes, round(subject.device_bytes * factor)),
        activation_bytes=round(subject.activation_bytes * factor),
        state_bytes=round(subject.state_bytes * factor),
    )


def subject_text(subject: Subject) -> str:
    """A subject as the store holds it."""
    return json.dumps(asdict(subject), separators=(",", ":"))


def subject_from(text: str) -> Subject:
    """The subject whose text that was. Raises ValueError or TypeError for anything else."""
    return Subject(**json.loads(text))


def observation_text(observation: Observation) -> str:
    """An observation as the store holds it: all that the calibration was told, and what its keys and figures mean."""
    return json.dumps(asdict(observation) | {"format": KEYS_FORMAT}, separators=(",", ":"), allow_nan=False)


def observation_from(text: str) -> Observation:
    """The observation whose text that was. Raises ValueError or TypeError for anything else."""
    values = json.loads(text)
    values.pop("format", None)
    return Observation(**(values | {"subject": Subject(**values["subject"])}))


def format_of(text: str) -> int:
    """The format of calibrations that an observation's keys are those of."""
    return int(json.loads(text).get("format", FIRST_FORMAT))


def _bytes_of(prediction: Prediction, categories: tuple[str, ...]) -> int:
    return sum(line.bytes for line in prediction.ledger if line.category in categories)


def _is_expandable(kind: str, job: Job) -> bool:
    """As stated, or by the framework's default."""
    stated = job.framework.expandable_segments
    return stated if stated is not None else default_of(kind.partition("/")[0], "framework.expandable_segments").value == "true"


def _version(job: Job) -> str:
    """What is stated of torch and CUDA; empty when neither is."""
    stated = (("torch", job.framework.torch), ("cuda", job.framework.cuda))
    return " ".join(f"{name} {version}" for name, version in stated if version)[:VERSION_CHARACTERS]
