"""Bodies that are nearly AdmissionReviews: parts replaced, left out, doubled, moved or cut; and what may become of one."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from tests.admission_reviews import APIS, KINDS, RECORDED, SPEC, cases

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 10**30, 1e308, float("nan"), "", " ", "\n", "x" * 5000, "\ud800", "\x00", "\u202e", "é" * 300),
    *([], {}, [[]], {"": {}}, ["a", {"b": None}], "1e999", "9" * 400, "${X}", "$(Y)", "{{ z }}", "null", "-1", "0x10", "1Gi"),
    *("nvidia.com/gpu", "- a\n- b", "&a [*a]", "{model: {preset: [1]}}", "!!python/object:x {}", "bash -c 'torchrun x.py'"),
    "{model: {preset: gpt2}, batch: {micro_batch_size: 1e9, sequence_length: 1e9}}",
    *("torchrun train.py --model_name_or_path gpt2", "/etc/passwd", "../../x", "a.b.c", "peakgate.io/mode"),
)
KEYS = (
    *("spec", "template", "containers", "metadata", "annotations", "labels", SPEC, "peakgate.io/mode", "peakgate.io/override", "items"),
    *("ownerReferences", "replicas", "command", "args", "env", "resources", "limits", "nodeSelector", "affinity", "kind", "apiVersion"),
)


def bodies(seed: int, count: int) -> Iterator[bytes]:
    """So many bodies, the same for the same seed."""
    draw = random.Random(seed)
    reviews = [dict(case.review) for case in cases()] + [json.loads(body) for body in RECORDED.values()]
    for _ in range(count):
        review = copy.deepcopy(draw.choice(reviews))
        times = draw.choice((1, 1, 2, 3, 8))
        for _ in range(times):
            _disturb(draw, review, most=70 if times == 1 else 2)
        yield _written(draw, review)


def _disturb(draw: random.Random, tree: Any, *, most: int) -> None:
    places = list(_places(tree))
    if not places:
        return
    holder, key = draw.choice(places)
    action = draw.randrange(6)
    if action == 0:
        del holder[key]
    elif action == 1:
        holder[key] = copy.deepcopy(draw.choice(HOSTILE))
    elif action == 2:
        other, place = draw.choice(places)
        holder[key] = copy.deepcopy(other[place])
    elif action == 3 and isinstance(holder, dict):
        holder[draw.choice(KEYS)] = copy.deepcopy(draw.choice((holder[key], *HOSTILE)))
    elif action == 4:
        holder[key] = [copy.deepcopy(holder[key])] * draw.choice((1, 2, most))
    else:
        for _ in range(draw.choice((1, 5, 80))):
            holder[key] = {draw.choice(KEYS): holder[key]}


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        pairs = list(each.items()) if isinstance(each, dict) else list(enumerate(each)) if isinstance(each, list) else []
        for key, value in pairs:
            yield each, key
            waiting.append(value)


def _written(draw: random.Random, review: Mapping[str, Any]) -> bytes:
    body = json.dumps(review).encode()
    way = draw.randrange(40)
    if way == 0:
        return body[: draw.randrange(len(body))]
    if way == 1:
        at = draw.randrange(len(body))
        return body[:at] + draw.randbytes(draw.randrange(1, 9)) + body[at + 1 :]
    return b"[" * 5000 if way == 2 else body


def faults_of(body: bytes, status: int, answer: bytes) -> list[str]:
    """What is wrong with an answer: anything but a verdict or a complaint, or a denial that has no ground."""
    if status == 400:
        return [] if _uid(body) is None else ["a review was refused"]
    if status != 200:
        return [f"status {status}"]
    review, response = json.loads(body), json.loads(answer)["response"]
    if response["uid"] != review["request"]["uid"]:
        return ["another uid"]
    if any(len(each) > 256 or not each.isascii() for each in response.get("warnings", [])) or len(response.get("warnings", [])) > 3:
        return [f"warnings {response['warnings']}"]
    if response.get("auditAnnotations", {}).get("outcome") == "fault":
        return ["a fault of the webhook"]
    return [] if response["allowed"] else _ungrounded(review["request"], response)


def _uid(body: bytes) -> str | None:
    """Of what is a review in form."""
    try:
        review = json.loads(body)
        is_review = (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
        uid = review["request"]["uid"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return uid if is_review and isinstance(uid, str) and uid else None


def _ungrounded(request: Mapping[str, Any], response: Mapping[str, Any]) -> list[str]:
    audit, metadata = response["auditAnnotations"], _mapping(request["object"].get("metadata"))
    owners = metadata.get("ownerReferences") or []
    kind = _mapping(request["kind"])
    ours = {(APIS[kind][0], kind.removeprefix("Volcano")) for kind in KINDS}
    grounds = {
        "mode": audit["mode"] == "enforce",
        "operation": request["operation"] == "CREATE",
        "kind": (_text(kind.get("group")), _text(kind.get("kind"))) in ours,
        "owner": not (isinstance(owners, list) and any(isinstance(each, dict) and each.get("controller") is True for each in owners)),
        "verdict": audit["verdict"] == "reject",
        "figures": int(audit["bound-bytes"]) > int(audit["usable-bytes"]) > 0,
        "code": response["status"]["code"] == 403,
    }
    return [f"denied without ground: {name}" for name, holds in grounds.items() if not holds]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
