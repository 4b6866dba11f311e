"""Every number and rule of the two seed texts, one test a row, named by its id (tests/golden/seed_numbers.jsonl)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.memory.builders import category_bytes
from tests.unit.memory.seed_rows import model_states, operations, step, techniques, when
from tests.unit.memory.seed_rows.registry import CHECKS
from tests.unit.memory.seeds import textbook_job

from peakgate.memory.job import (
    Offload,
)
from peakgate.memory.predict import predict

ROWS = [json.loads(line) for line in (Path(__file__).parents[2] / "golden" / "seed_numbers.jsonl").read_text().splitlines()]

MODULES = (model_states, operations, step, techniques, when)
"""Importing them registers their checks."""


@pytest.mark.parametrize("seed", ROWS, ids=lambda r: r["id"])
def test_seed_row(seed: dict[str, Any]) -> None:
    """The memory model gives what the seed states, within the row's own tolerance."""
    CHECKS[seed["id"]](seed["inputs"], seed["expect"], seed["rel_tol"])


def test_no_row_is_forgotten() -> None:
    """Each row has a check."""
    assert {r["id"] for r in ROWS} == set(CHECKS)


def test_offload_is_the_last_resort() -> None:
    """Offloaded optimizer states leave the card and appear on the host."""
    job = replace(textbook_job(), offload=Offload(optimizer="cpu"))
    assert category_bytes(predict(job), "optimizer_states") == 0
    assert predict(job).host_bytes == 12 * predict(job).parameters
