"""Reviews from body to body, with a real service behind: kinds, modes, owners, dry runs, sources, wishes, and what is not ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from tests.admission_reviews import RECORDED, RULES, Case, cases, recorded, with_new_uids
from tests.unit.hooks.kubernetes.checks import check

from peakgate.client.connect import embedded_target
from peakgate.hooks.kubernetes.judging import Jury
from peakgate.hooks.kubernetes.metrics import WebhookMetrics
from peakgate.hooks.kubernetes.review import Reviewer
from peakgate.hooks.kubernetes.rules import Rules
from peakgate.hooks.slurm.advising import Advisers
from peakgate.hooks.slurm.asking import Judges, Service

CASES = cases()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that keeps what it predicts."""
    with embedded_target(f"sqlite:///{tmp_path_factory.mktemp('db')}/p.db") as found:
        yield found


@pytest.fixture
async def reviewer(target: str) -> AsyncIterator[Reviewer]:
    """A reviewer of the rules of the table."""
    service = Service(target)
    judges = Judges(service=service, deadline_seconds=10.0)
    with ThreadPoolExecutor(1) as executor:
        yield Reviewer(
            rules=lambda: Rules.model_validate(yaml.safe_load(RULES)),
            jury=Jury(judges=judges, advisers=Advisers(judges=judges, wait_seconds=10.0)),
            metrics=WebhookMetrics(),
            tell=_fail,
            executor=executor,
            deadline_seconds=30.0,
        )
    await service.channel.close()


def _fail(level: str, text: str) -> None:
    raise AssertionError(f"{level}: {text}")


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


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_review_is_answered(reviewer: Reviewer, path: Path) -> None:
    """What a real API server sent: its uid comes back, and a launch that states no model is allowed with one warning."""
    body = recorded(path)
    response = json.loads(await reviewer.validate(body))["response"]
    assert response["uid"] == json.loads(body)["request"]["uid"]
    assert response["allowed"] is True
    assert len(response["warnings"]) == 1
    assert response["auditAnnotations"]["outcome"] == "unread"
