"""Which prediction a job belongs to, and the window that is looked at."""

from __future__ import annotations

import pytest

from peakgate.client.errors import InputError
from peakgate.client.imports.joined import read_mapping
from peakgate.client.imports.window import moment, window


def test_a_mapping_is_lines_of_job_and_prediction() -> None:
    """Blanks or a comma, comments, bare ids."""
    text = "# made by hand\n101 predictions/abc\n102,def  # the second\n\n"
    assert read_mapping(text, where="m") == {"101": "predictions/abc", "102": "predictions/def"}


@pytest.mark.parametrize("line", ["101", "101 a b"])
def test_another_line_is_refused_with_its_number(line: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(InputError, match="line 2"):
        read_mapping(f"100 x\n{line}\n", where="m")


@pytest.mark.parametrize(
    ("text", "want"),
    [("90s", 910), ("10m", 400), ("0s", 1000), ("500", 500), ("1970-01-01T00:10:00Z", 600), ("1970-01-01T01:10:00+01:00", 600)],
)
def test_times_are_taken_in_three_forms(text: str, want: int) -> None:
    """So long ago, seconds, or a time with its zone."""
    assert moment(text, now=1000.5) == want


def test_a_window_stands_on_its_step() -> None:
    """The same window is read at the same points again."""
    assert window("910", "0s", step_seconds=60, now=1000.5) == (900, 960)
    with pytest.raises(InputError, match="before it begins"):
        window("0s", "10m", step_seconds=60, now=1000.5)
    with pytest.raises(InputError, match="no time"):
        window("yesterday", "0s", step_seconds=60, now=1000.5)
