"""A reviewer with a real service behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from tests.admission_reviews import RULES

from peakgate.client.connect import embedded_target
from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.kubernetes.judging import Jury
from peakgate.hooks.kubernetes.metrics import WebhookMetrics
from peakgate.hooks.kubernetes.review import Reviewer
from peakgate.hooks.kubernetes.rules import Rules


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
