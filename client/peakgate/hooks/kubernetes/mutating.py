"""What the mutating webhook adds, as a JSON patch (RFC 6902): the prediction's name, and nodes whose GPUs have the memory. Pure.

Nothing of the submitter's is changed, and an object that has it all already gets an empty patch. The affinity comes only where it keeps the
pod from no node that holds it: not where a node may lack the label, and not into a CronJob, whose job may change later beneath it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakgate.hooks.kubernetes.annotations import PREDICTION
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.judging import Judged
from peakgate.hooks.kubernetes.labelled_nodes import is_labelled_wherever
from peakgate.hooks.kubernetes.node_labels import MEMORY
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at
from peakgate.hooks.kubernetes.quantities import MEBIBYTE, label_bytes
from peakgate.hooks.kubernetes.requests import GPU
from peakgate.hooks.kubernetes.selection import GREATER
from peakgate.hooks.kubernetes.templates import Template, escaped, templates_of
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict

REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
AFFINITY, ANNOTATION, NOTHING = "affinity", "annotation", "nothing"
"""What a patch changes; an affinity comes with an annotation, but in a dry run."""

CHANGED_LATER = "CronJob"


def patch_of(workload: Object, judged: Judged, facts: Facts) -> list[Object]:
    """The operations, none where nothing is known. `facts`: of the nodes."""
    answer = judged.judgement.answer
    if answer is None:
        return []
    templates = [each for each in templates_of(workload) if _asks_for_whole_cards(each.pod)]
    operations: list[Object] = []
    if answer.prediction:
        for pointer, holder in {"": workload, **{each.pointer: each.pod for each in templates}}.items():
            operations += _annotated(holder, pointer, answer.prediction)
    least = least_mebibytes(answer) if _is_sure(judged, answer) and workload.get("kind") != CHANGED_LATER else 0
    if least and _is_had_by_a_card(least, facts):
        for each in templates:
            operations += _placed(each, least) if is_labelled_wherever(each.pod, facts) else []
    return operations


def changed_by(patch: Sequence[Object]) -> str:
    """The word of a patch in metrics."""
    if any("/spec/affinity" in str(each["path"]) for each in patch):
        return AFFINITY
    return ANNOTATION if patch else NOTHING


def _is_sure(judged: Judged, answer: PredictResponse) -> bool:
    """Whether the bound keeps the job from no card that it may fit: it fits the one that was looked at, or none was. What does not fit, or
    may fit by what it leaves open, would wait for ever for a node: a refusal that no mode asked for and no try or override lifts. So would
    those of its pods that run on another card than the one that it fits."""
    found = judged.conclusion
    if found is not None and found.is_mixed and found.verdict != Verdict.VERDICT_ADMIT:
        return False
    return answer.verdict == Verdict.VERDICT_ADMIT or not answer.capacity.usable_bytes


def _is_had_by_a_card(least: int, facts: Facts) -> bool:
    """Whether a card that is known, by its name or on a node, passes it: what no card has, nobody's node will ever have."""
    labels = (label_bytes(each.labels.get(MEMORY, "")) or 0 for each in facts.nodes or ())
    return not facts.catalogue or max([*facts.catalogue.values(), *labels]) > least * MEBIBYTE


def least_mebibytes(answer: PredictResponse) -> int:
    """The memory that a card's label must pass, so that what the driver keeps leaves the bound; 0: it is not known."""
    if not answer.peak.bound_bytes:
        return 0
    kept = max(0, answer.capacity.total_bytes - answer.capacity.usable_bytes)
    return -(-(answer.peak.bound_bytes + kept) // MEBIBYTE) - 1


def _asks_for_whole_cards(pod: Object) -> bool:
    containers = list_at(pod, "spec", "containers")
    return any(GPU in mapping_at(each, "resources", part) for each in containers for part in ("limits", "requests"))


def _annotated(holder: Object, pointer: str, prediction: str) -> list[Object]:
    metadata = holder.get("metadata")
    annotations = at(metadata, "annotations")
    if not isinstance(metadata, Mapping):
        return [_add(f"{pointer}/metadata", {"annotations": {PREDICTION: prediction}})]
    if not isinstance(annotations, Mapping):
        return [_add(f"{pointer}/metadata/annotations", {PREDICTION: prediction})]
    if annotations.get(PREDICTION) == prediction:
        return []
    return [_add(f"{pointer}/metadata/annotations/{escaped(PREDICTION)}", prediction)]


def _placed(template: Template, least: int) -> list[Object]:
    """One more expression in each of the required terms, which are alternatives; nothing where every one has it."""
    wanted = {"key": MEMORY, "operator": GREATER, "values": [str(least)]}
    pointer, here = f"{template.pointer}/spec", mapping_at(template.pod, "spec")
    for depth, key in enumerate(REQUIRED[:-1]):
        inner = here.get(key)
        pointer = f"{pointer}/{key}"
        if not isinstance(inner, Mapping):
            return [_add(pointer, _nested(REQUIRED[depth + 1 :], [{"matchExpressions": [wanted]}]))]
        here = inner
    terms, pointer = here.get(REQUIRED[-1]), f"{pointer}/{REQUIRED[-1]}"
    if not isinstance(terms, list) or not terms:
        return [_add(pointer, [{"matchExpressions": [wanted]}])]
    return [operation for place, term in enumerate(terms) for operation in _extended(mapping_at(term), f"{pointer}/{place}", wanted)]


def _extended(term: Object, pointer: str, wanted: Object) -> list[Object]:
    expressions = term.get("matchExpressions")
    if not isinstance(expressions, list):
        return [_add(f"{pointer}/matchExpressions", [wanted])]
    ours = [each for each in expressions if isinstance(each, Mapping) and each.get("key") == MEMORY and each.get("operator") == GREATER]
    return [] if any(each == wanted for each in ours) else [_add(f"{pointer}/matchExpressions/-", wanted)]


def _nested(keys: tuple[str, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _add(pointer: str, value: object) -> Object:
    return {"op": "add", "path": pointer, "value": value}
