"""What a script says to whoever admits it."""

from __future__ import annotations

import pytest

from peakgate.hooks.slurm.attached import Attached
from peakgate.hooks.slurm.wishes import Wishes, read_wishes


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ("", Wishes()),
        ("#PEAKGATE batch.micro_batch_size=4\n", Wishes()),
        ("#PEAKGATE try=the last paper = today\n", Wishes(try_reason="the last paper = today")),
        ("# PEAKGATE: try = 'a new kernel'\n#PEAKGATE try=second\n", Wishes(try_reason="second")),
        ("#PEAKGATE override=sesame:ticket 7: urgent\n", Wishes(override="sesame", override_reason="ticket 7: urgent")),
        ("#PEAKGATE override=sesame\n", Wishes(override="sesame")),
        ("echo '#PEAKGATE try=x'\n", Wishes()),
        ("#PEAKGATE try=\x1b[31mred\x00\n", Wishes(try_reason="[31mred")),
    ],
)
def test_lines_of_a_script(script: str, want: Wishes) -> None:
    """Whole lines, the last of each kind, without control characters."""
    assert read_wishes(script, Attached()) == want


def test_what_the_submit_host_attached_counts_where_no_line_says_it() -> None:
    """Of srun, or of an option of the command."""
    attached = Attached(try_reason="from the option", override="sesame:why")
    assert read_wishes("", attached) == Wishes(try_reason="from the option", override="sesame", override_reason="why")
    assert read_wishes("#PEAKGATE try=from the line\n", attached).try_reason == "from the line"


def test_a_reason_has_an_end() -> None:
    """It stands in journals and databases."""
    assert len(read_wishes(f"#PEAKGATE try={'x' * 5000}\n", Attached()).try_reason) == 200
