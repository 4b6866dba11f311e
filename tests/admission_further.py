"""More AdmissionReviews with what has to become of each: a job's own word for its GPU, and updates."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from tests.admission_reviews import FITS, MODES, OWNER, T4, TOO_LARGE, Case, a_review, stating


def further_cases() -> list[Case]:
    """All of them."""
    return [*_by_own_gpu(), *_by_update()]


def _by_own_gpu() -> Iterator[Case]:
    enforced = MODES["enforce"]
    huge, h100 = {**TOO_LARGE, "gpu": {"memory_bytes": 10**15}}, {**FITS, "gpu": {"type": "h100-80gb"}}
    beside = a_review(stating("Job", huge, product=T4), namespace=enforced)
    says = "it states gpu.memory_bytes 1000000000000000, and gets Tesla-T4: judged on that"
    yield Case(name="a word for a larger GPU", review=beside, outcome="denied", verdict="reject", says=says)
    other = a_review(stating("Job", h100, product=T4))
    yield Case(name="a word for another GPU", review=other, outcome="allowed", verdict="admit", says="it states gpu.type h100-80gb")
    same = a_review(stating("Job", {**h100, "gpu": {"type": "H100"}}), namespace=enforced)
    yield Case(name="a word for the same GPU", review=same, outcome="allowed", verdict="admit")
    alone = a_review(stating("Job", huge, product=""), namespace=enforced)
    yield Case(name="a word where nothing is selected", review=alone, outcome="allowed", verdict="admit")


def _by_update() -> Iterator[Case]:
    enforced = MODES["enforce"]

    def updated(old: Mapping[str, Any], new: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        changed = copy.deepcopy(dict(new))
        changed["spec"] |= changes
        return a_review(changed, kind="CronJob", operation="UPDATE", namespace=enforced, old=old)

    small, large = stating("CronJob", FITS, product=T4), stating("CronJob", TOO_LARGE, product=T4)
    yield Case(name="a job that grew", review=updated(small, large), outcome="denied", verdict="reject", says="too few")
    yield Case(name="a job that shrank", review=updated(large, small), outcome="allowed", verdict="admit")
    yield Case(name="another schedule", review=updated(large, large, schedule="@hourly"), outcome="skipped")
    yield Case(name="suspended", review=updated(large, large, suspend=True), outcome="skipped")
    asleep = {**large, "spec": {**large["spec"], "suspend": True}}
    yield Case(name="resumed", review=updated(asleep, large, suspend=False), outcome="skipped")
    waking = updated({**small, "spec": {**small["spec"], "suspend": True}}, large)
    yield Case(name="resumed and grown", review=waking, outcome="denied", verdict="reject", says="too few")
    labelled = {**large, "metadata": {**large["metadata"], "labels": {"a": "b"}}}
    yield Case(name="another label", review=updated(large, labelled), outcome="skipped")
    named = copy.deepcopy(large)
    named["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"]["peakgate.io/prediction"] = "predictions/p1"
    yield Case(name="a prediction's name is lost", review=updated(named, large), outcome="skipped")
    owned = {**large, "metadata": {**large["metadata"], "ownerReferences": [OWNER]}}
    yield Case(name="an update of what a controller made", review=updated(small, owned), outcome="skipped")
