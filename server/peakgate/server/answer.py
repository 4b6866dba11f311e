"""Figures and a decision -> PredictResponse, and the parts of it that are stored."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import groupby

from google.protobuf import struct_pb2

from peakgate.memory.change import Value
from peakgate.memory.prediction import TimelinePoint
from peakgate.server.assess import Assessment
from peakgate.server.decide import Decision, oom_phase
from peakgate.server.reasons import Sought, reason, warnings
from peakgate.server.suggest import Advice, Shortfall
from peakgate.v1 import prediction_pb2 as pb
from peakgate.v1 import prediction_service_pb2 as service_pb

ANSWER_LIMIT_BYTES = 2048
"""Of a stored answer, packed. With the indexed columns a row stays under 4 KB."""


def build_answer(
    assessment: Assessment,
    decision: Decision,
    advice: Sought,
    notes: tuple[str, ...] = (),
    *,
    calibration_version: str,
) -> pb.PredictResponse:
    """The whole answer, without a name: that is given when it is stored."""
    prediction = assessment.prediction
    return pb.PredictResponse(
        verdict=pb.Verdict.Value(f"VERDICT_{decision.verdict.value}"),
        reason=reason(decision, assessment, advice),
        peak=_peak(assessment),
        capacity=_capacity(assessment),
        model=pb.ModelFacts(
            parameters=prediction.parameters,
            trainable_parameters=prediction.trainable_parameters,
            saved_activation_bytes_per_layer=prediction.saved_activation_bytes_per_layer,
        ),
        peak_phase=prediction.peak_phase,
        oom_phase=oom_phase(assessment),
        rank=pb.Rank(pipeline_stage=prediction.pipeline_stage, reason=prediction.rank_reason),
        ledger=[pb.LedgerLine(category=line.category, item=line.item, bytes=line.bytes) for line in prediction.ledger],
        timeline=_timeline(prediction.timeline),
        suggestions=[suggestion(each) for each in advice or ()],
        calibration=pb.CalibrationStamp(version=calibration_version, group=assessment.subject.group, observations=assessment.observations),
        assumptions=prediction.assumptions,
        warnings=warnings(decision, assessment),
        notes=notes,
    )


def suggestion(advice: Advice) -> pb.Suggestion:
    """A change as the answer holds it."""
    message = pb.Suggestion(
        title=advice.title,
        bound_bytes=advice.bound_bytes,
        fits=advice.fits,
        relative_step_time=advice.relative_step_time,
        why=advice.why,
        headroom_bytes=advice.headroom_bytes,
        conditions=advice.conditions,
        alters=advice.alters,
    )
    for path, value in advice.changes:
        message.changes[path].CopyFrom(_value(value))
    return message


def shortfall(found: Shortfall) -> service_pb.Shortfall:
    """What the plan that comes nearest is short of."""
    largest = found.largest
    return service_pb.Shortfall(bytes=found.bytes, category=largest.category, item=largest.item, closest=suggestion(found.closest))


def _timeline(points: Sequence[TimelinePoint]) -> list[pb.TimelinePoint]:
    """The points, with layers numbered from 1 in the order of the stage's forward pass: a backward pass counts down."""
    numbered: list[pb.TimelinePoint] = []
    for (phase, label), group in groupby(points, key=lambda point: (point.phase, point.label)):
        run = list(group)
        for place, point in enumerate(run, start=1):
            number = len(run) + 1 - place if phase == "backward" else place
            name = f"{label} {number}" if label.endswith("layer") else label
            numbered.append(pb.TimelinePoint(phase=phase, label=name, allocated_bytes=point.allocated_bytes))
    return numbered


def _value(value: Value) -> struct_pb2.Value:
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, tuple):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_value(each) for each in value]))
    return struct_pb2.Value(string_value=value) if isinstance(value, str) else struct_pb2.Value(number_value=value)


def _peak(assessment: Assessment) -> pb.Peak:
    prediction = assessment.prediction
    return pb.Peak(
        live_bytes=prediction.live_bytes,
        allocated_bytes=prediction.allocated_bytes,
        reserved_bytes=prediction.reserved_bytes,
        device_bytes=prediction.device_bytes,
        required_bytes=prediction.required_bytes,
        bound_bytes=assessment.bound_bytes,
        host_bytes=prediction.host_bytes,
        coverage=assessment.coverage,
        oom_probability=assessment.oom_probability,
    )


def _capacity(assessment: Assessment) -> pb.Capacity | None:
    if assessment.capacity is None:
        return None
    card = assessment.capacity
    return pb.Capacity(gpu=card.gpu, total_bytes=card.total_bytes, usable_bytes=assessment.usable_bytes, is_part=card.is_part)


def brief(answer: pb.PredictResponse) -> pb.PredictResponse:
    """The answer without timeline and suggestions."""
    short = pb.PredictResponse()
    short.CopyFrom(answer)
    short.ClearField("timeline")
    short.ClearField("suggestions")
    return short


def pack(answer: pb.PredictResponse) -> bytes:
    """The answer without its timeline, compressed. What is longest and can be computed again goes first when it is too large."""
    short = pb.PredictResponse()
    short.CopyFrom(answer)
    for name in ("timeline", "suggestions", "assumptions", "notes", "warnings", "ledger"):
        if name == "timeline" or len(zlib.compress(short.SerializeToString())) > ANSWER_LIMIT_BYTES:
            short.ClearField(name)
    return zlib.compress(short.SerializeToString())


def unpack(packed: bytes) -> pb.PredictResponse:
    """The answer that `pack` kept."""
    return pb.PredictResponse.FromString(zlib.decompress(packed))
