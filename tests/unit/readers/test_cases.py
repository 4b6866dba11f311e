"""Every case of tests/golden/launches gives the job document that stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.unit.readers.cases import FOLDERS, read_case


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_launch_gives_its_job(folder: Path) -> None:
    """Every field, no other one, each with a place; the format by its name."""
    want = yaml.safe_load((folder / "job.yaml").read_text())
    warnings, unread = want.pop("warnings", 0), want.pop("unread", [])
    found = read_case(folder)
    assert found.format == folder.parent.name.replace("_", "-")
    assert {path: stated.value for path, stated in found.fields.items()} == want
    assert all(str(stated.place) for stated in found.fields.values())
    assert len(found.warnings) == warnings, found.warnings
    assert len(found.unread) == len(unread), found.unread
    for word, sentence in zip(unread, found.unread, strict=True):
        assert word in sentence
