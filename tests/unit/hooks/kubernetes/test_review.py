"""Reviews from body to body, with a real service behind: kinds, modes, owners, dry runs, sources, wishes, and what is not ours."""

from __future__ import annotations

import json

import pytest
from tests.admission_further import further_cases
from tests.admission_reviews import RECORDED, Case, cases, with_new_uids
from tests.unit.hooks.kubernetes.checks import check

from peakgate.hooks.kubernetes.review import Reviewer

CASES = [*cases(), *further_cases()]


def test_the_table_is_large_and_its_names_are_different() -> None:
    """At least sixty bodies beside the recorded ones."""
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_review_comes_out_as_the_table_says(reviewer: Reviewer, case: Case) -> None:
    """Allowed or denied, what is said, what the audit log keeps, and what is counted."""
    review = json.loads(await reviewer.validate(with_new_uids(case).body))
    check(case, review)
    found = [
        (sample.labels["verdict"], sample.labels["outcome"])
        for metric in reviewer.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "peakgate_webhook_reviews_total" and sample.value
    ]
    assert found == [(case.verdict, case.outcome)]


@pytest.mark.parametrize("body", RECORDED.values(), ids=RECORDED)
async def test_a_recorded_review_is_answered(reviewer: Reviewer, body: bytes) -> None:
    """What a real API server sent: its uid comes back, and a launch that states no model is allowed with one warning."""
    response = json.loads(await reviewer.validate(body))["response"]
    assert response["uid"] == json.loads(body)["request"]["uid"]
    assert response["allowed"] is True
    assert len(response["warnings"]) == 1
    assert response["auditAnnotations"]["outcome"] == "unread"
