"""Lists that come in pages."""

from __future__ import annotations

import pytest

from peakgate.client.calling import LARGEST_PAGE, paged

ROWS = 2500


class Pages:
    """A list of numbers behind a page at a time. `asked`: the sizes."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def page(self, size: int, token: str) -> tuple[range, str]:
        """The rows from a token on, and the next one."""
        self.asked.append(size)
        start = int(token or 0)
        end = min(start + size, ROWS)
        return range(start, end), str(end) if end < ROWS else ""


@pytest.mark.parametrize(
    ("limit", "want_rows", "want_asked"),
    [
        (None, ROWS, [LARGEST_PAGE] * 3),
        (ROWS + 1, ROWS, [LARGEST_PAGE, LARGEST_PAGE, ROWS + 1 - 2 * LARGEST_PAGE]),
        (1200, 1200, [LARGEST_PAGE, 200]),
        (7, 7, [7]),
    ],
)
def test_pages_are_asked_for_until_there_is_enough(limit: int | None, want_rows: int, want_asked: list[int]) -> None:
    """All rows in their order, no row twice, and no page more than is needed."""
    pages = Pages()
    assert paged(pages.page, limit=limit) == list(range(want_rows))
    assert pages.asked == want_asked
