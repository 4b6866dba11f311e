"""Each test is a process of its own for the reporter: the first training in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.client.torch.fakes import Inbox, an_inbox

from peakgate.client.torch.allocator import CONF_VARIABLES
from peakgate.client.torch.ranks import RANK_VARIABLES, SIZE_VARIABLES
from peakgate.client.torch.reporter import Reporter


@pytest.fixture(autouse=True)
def _first_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporter, "_made", (0, 0))
    for name in ("PEAKGATE_PREDICTION", *CONF_VARIABLES, *RANK_VARIABLES, *SIZE_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    """The agent's end of the socket."""
    with an_inbox(tmp_path) as inbox:
        yield inbox
