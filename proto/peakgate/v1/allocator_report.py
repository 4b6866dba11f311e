"""What the in-process helper tells the agent of its node: one datagram of compact JSON over a unix socket.

Only the standard library: a training process imports this, and must load neither protobuf nor gRPC for it.

The figures are those of torch's caching allocator (torch/cuda/memory.py, `memory_stats`) and only ever grow while a process lives, so a
datagram that is lost, doubled or late changes nothing that the next one does not mend.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

VERSION = 1
MAX_BYTES = 4096
"""Of a datagram; the usual one takes about 500."""

DEFAULT_SOCKET = "/run/peakgate/agent.sock"
SOCKET_VARIABLE = "PEAKGATE_SOCKET"
PREDICTION_VARIABLE = "PEAKGATE_PREDICTION"

PHASES = ("load", "forward", "loss", "backward", "optimizer", "evaluate", "save")
"""The phases of the step, as the API names them (telemetry_service.proto, PhasePeak)."""

NATIVE, ASYNC = "native", "cudaMallocAsync"
"""Allocator backends (torch.cuda.get_allocator_backend); of the second some figures are always 0."""

MAX_TEXT = 200
"""Characters of a line; a PYTORCH_ALLOC_CONF of all its options is shorter, and three lines leave most of a datagram to the figures."""
MAX_NUMBER = (1 << 63) - 1
"""What the service's columns hold."""
UUID = re.compile(r"(?:GPU-|MIG-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class BadReportError(ValueError):
    """A datagram that is no report. The message is fixed text and names of fields: nothing of the sender's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """The allocator's peaks in one phase of the step."""

    phase: str
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorReport:
    """What one process has seen of one GPU so far.

    `gpu_uuid` is empty where torch cannot name the GPU: the only one of the process. `longest_sequence` is in tokens, 0 where no batch was
    seen; of a phase a figure is 0 where it did not grow in it. `backend` and `conf` are the allocator's (PYTORCH_ALLOC_CONF);
    `prediction` is the training's own, or empty: a hint, not a fact. `training` counts those of the process from 0: of a later one the
    process's memory does not tell apart what was the earlier one's.
    """

    gpu_uuid: str = ""
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    retries: int = 0
    ooms: int = 0
    steps_done: int = 0
    longest_sequence: int = 0
    training: int = 0
    phases: tuple[PhaseReport, ...] = ()
    backend: str = NATIVE
    conf: str = ""
    prediction: str = ""


NUMBERS = {
    "allocated": "allocated_bytes",
    "reserved": "reserved_bytes",
    "retries": "retries",
    "ooms": "ooms",
    "steps": "steps_done",
    "longest": "longest_sequence",
    "training": "training",
}
TEXTS = {"backend": "backend", "conf": "conf", "prediction": "prediction"}
"""Keys of the JSON object to fields. `v`, `gpu` and `phases` stand beside them."""

KEYS = {"v", "gpu", "phases", *NUMBERS, *TEXTS}


def encode(report: AllocatorReport) -> bytes:
    """The datagram, at most MAX_BYTES: texts are cut to MAX_TEXT characters. Raises BadReportError for what `decode` would not take."""
    value: dict[str, object] = {"v": VERSION, "gpu": report.gpu_uuid}
    value |= {key: getattr(report, name) for key, name in NUMBERS.items()}
    value |= {key: _printable(getattr(report, name)) for key, name in TEXTS.items()}
    value["phases"] = {each.phase: [each.allocated_bytes, each.reserved_bytes] for each in report.phases}
    payload = json.dumps(value, separators=(",", ":")).encode()
    decode(payload)
    return payload


def decode(payload: bytes) -> AllocatorReport:
    """The report in a datagram. Raises BadReportError for anything else, and nothing but that, whatever the bytes are."""
    value = _object(payload)
    if type(value.get("v")) is not int or value["v"] != VERSION:
        raise BadReportError(f"v: this agent understands version {VERSION}")
    if not value.keys() <= KEYS:
        raise BadReportError(f"only these keys are known: {' '.join(sorted(KEYS))}")
    fields: dict[str, Any] = {name: _number(value.get(key, 0), key) for key, name in NUMBERS.items()}
    fields |= {name: _text(value.get(key, ""), key) for key, name in TEXTS.items()}
    return AllocatorReport(
        gpu_uuid=_uuid(value.get("gpu", "")),
        phases=_phases(value.get("phases", {})),
        **fields,
    )


def bare_uuid(uuid: str) -> str:
    """Without GPU- or MIG-: CUDA gives the sixteen bytes alone, NVML writes the kind in front."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-")


def _object(payload: bytes) -> dict[str, object]:
    if len(payload) > MAX_BYTES:
        raise BadReportError(f"longer than {MAX_BYTES} bytes")
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError too
        raise BadReportError("no JSON") from None
    if not isinstance(value, dict):
        raise BadReportError("no JSON object")
    return value


def _uuid(value: object) -> str:
    if not (isinstance(value, str) and (not value or UUID.fullmatch(value))):
        raise BadReportError("gpu: no UUID of a GPU")
    return value


def _number(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_NUMBER:
        raise BadReportError(f"{key}: no whole number from 0 to 2^63 - 1")
    return value


def _text(value: object, key: str) -> str:
    if not (isinstance(value, str) and len(value) <= MAX_TEXT and value.isascii() and value.isprintable()):
        raise BadReportError(f"{key}: no line of at most {MAX_TEXT} printable characters")
    return value


def _phases(value: object) -> tuple[PhaseReport, ...]:
    if not (isinstance(value, dict) and value.keys() <= set(PHASES)):
        raise BadReportError(f"phases: only these are known: {' '.join(PHASES)}")
    return tuple(_phase(name, pair) for name, pair in value.items())


def _phase(name: str, pair: object) -> PhaseReport:
    if not (isinstance(pair, list) and len(pair) == 2):
        raise BadReportError(f"phases.{name}: no pair of numbers")
    return PhaseReport(phase=name, allocated_bytes=_number(pair[0], f"phases.{name}"), reserved_bytes=_number(pair[1], f"phases.{name}"))


def _printable(text: str) -> str:
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in text)[:MAX_TEXT]
