"""The page of accuracy is what the memory model gives today."""

from __future__ import annotations

from tests.bench.report import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """A change of any figure shows in the page: `python -m tests.bench.report` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()
