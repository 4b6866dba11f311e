"""A diagnosis as JSON."""

from __future__ import annotations

from peakgate.client.diagnose.diagnosis import Diagnosis
from peakgate.client.diagnose.find import Failure
from peakgate.client.diagnose.stages import Stage
from peakgate.client.diagnose.where import telling_frame
from peakgate.v1.document import Plain, answer_to_dict


def as_dict(found: Diagnosis) -> dict[str, Plain]:
    """Every part that the text for people has, under stable names; what is not known is null or empty."""
    failure, stage = found.failure, found.stage
    frame = telling_frame(failure.frames, stage.name) if failure else None
    return {
        "kind": failure.message.kind.name if failure else None,
        "stage": stage.name,
        "told_by": found.told_by or None,
        "phase": stage.phase or None,
        "category": found.category or None,
        "categories": [*found.categories],
        "message": _message(failure) if failure else None,
        "frame": str(frame) if frame else None,
        "steps_before": failure.steps if failure else None,
        "tensors": [
            {"item": each.item, "formula": each.formula, "bytes": each.bytes, "category": each.category(stage.name), "exact": each.exact}
            for each in found.tensors
        ],
        "ledger": [answer_to_dict(line) for line in found.lines],
        **_advice(stage),
        "after_many_steps": _advice(found.further) if found.further else None,
        "suggestions": [answer_to_dict(each) for each in found.suggestions],
        "notes": [*found.notes],
    }


def _message(failure: Failure) -> dict[str, Plain]:
    sizes: dict[str, Plain] = {f"{name}_bytes": size.bytes for name, size in failure.message.sizes.items()}
    others: dict[str, Plain] = {str(number): size for number, size in failure.message.others.items()}
    return {"text": failure.message.text, "device": failure.message.device, **sizes, "other_processes_bytes": others}


def _advice(stage: Stage) -> dict[str, Plain]:
    return {
        "why": stage.why,
        "helps": [*stage.helps],
        "helps_not": [{"what": what, "why": why} for what, why in stage.helps_not],
        "causes": [{"name": each.name, "sign": each.sign, "remedy": each.remedy} for each in stage.causes],
    }
