"""One service and one webhook for the tests of a module: each takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.admission_reviews import RULES
from tests.bench.programs import Program, peakgate_server
from tests.webhooks import RunningWebhook, running_webhook


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A real service on SQLite."""
    with peakgate_server(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture(scope="session")
def webhook(service: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWebhook]:
    """A real webhook that asks it."""
    with running_webhook(tmp_path_factory.mktemp("webhook"), RULES, "--server", service.target, "--no-beside") as found:
        yield found
