"""An audit as text: the first lines say whether the margin can be trusted, and nothing in a name does anything."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from tests.unit.client.audits import GOLDEN, HOSTILE, a_report, a_wide_report, an_audit, printed

from peakgate.client.render import audit_words as words
from peakgate.client.render.audit import print_audit
from peakgate.v1.calibration_report_pb2 import CalibrationAudit, LabelQuality, Rejections, ReportCalibrationResponse, Tries


def test_a_small_audit_reads_as_it_should() -> None:
    """Word for word."""
    assert printed(a_report()) == (GOLDEN / "audit_small.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("trust", "reasons", "want"),
    [
        ("trusted", [], ("The margin can be trusted: 96 of 100 needs stayed", "→ nothing to do")),
        ("trusted", ["COVERAGE_WAS_BELOW_PROMISE"], ("The margin can be trusted", "→ nothing now")),
        ("distrusted", ["MISSES_TOO_OFTEN"], ("The margin cannot be trusted now", "→ the bounds are wide ones until it has learned")),
        ("distrusted", ["COVERAGE_BELOW_PROMISE"], ("The margin cannot be trusted now", "→ look at the groups that are marked")),
        ("unknown", ["TOO_FEW_NEEDS"], ("Nobody can tell yet", "→ let agents report")),
    ],
)
def test_the_first_lines_say_whether_to_trust_it_and_what_to_do(trust: str, reasons: list[str], want: tuple[str, str]) -> None:
    """The verdict first, the remedy by the third line."""
    first = printed(a_report(trust=trust, trust_reasons=reasons)).splitlines()
    assert first[0].startswith(want[0])
    assert any(line.strip().startswith(want[1]) for line in first[1:3])


def test_without_needs_it_says_so() -> None:
    """An empty answer is a sentence, not a table of nothing."""
    text = printed(ReportCalibrationResponse(trust="unknown", trust_reasons=["TOO_FEW_NEEDS"]))
    assert "no need of a job was seen" in text
    assert "group  " not in text


def test_a_word_that_is_not_known_stands_for_itself() -> None:
    """A newer service may have one more."""
    assert "because NEW_WORD." in printed(a_report(trust="distrusted", trust_reasons=["NEW_WORD"]))


def test_hostile_names_do_nothing() -> None:
    """No control character, no markup, whoever named a group, a user or a level."""
    text = printed(a_wide_report())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text
    assert "\\x1b[31m" in text
    assert HOSTILE not in text


@pytest.mark.parametrize(
    ("share", "want"), [(1.0, "100 %"), (0.99999, "> 99.9 %"), (0.953, "95.3 %"), (0.0, "0 %"), (0.0001, "< 0.1 %"), (0.5, "50.0 %")]
)
def test_only_all_of_it_is_100_percent(share: float, want: str) -> None:
    """One miss of a hundred thousand is not rounded away."""
    assert words.percent(share) == want


def test_rejections_are_told_as_far_as_they_are_known() -> None:
    """None, none that ran, and some of which one is not known."""
    assert words.rejections_finding(CalibrationAudit()) == ""
    assert "nobody can tell" in words.rejections_finding(CalibrationAudit(rejections=Rejections(predictions=1)))
    want = (
        "20 jobs were rejected; 5 rejected jobs ran all the same: 1 needed no more than the card (rejected by mistake), 3 needed more, of 1"
    )
    assert words.rejections_finding(an_audit()).startswith(want)


def test_tries_labels_waste_and_what_was_kept_out() -> None:
    """A sentence each; none where there is nothing to say."""
    for finding in (words.tries_finding, words.labels_finding, words.waste_finding):
        assert finding(CalibrationAudit()) == ""
    assert words.kept_out_finding(CalibrationAudit(), ()) == ""
    assert words.tries_finding(CalibrationAudit(tries=Tries(granted=1, fitted=1))).startswith(
        "1 rejected job was tried with leave: 1 fitted"
    )
    assert "use peakgate.client.torch" in words.labels_finding(an_audit())
    assert "use peakgate" not in words.labels_finding(CalibrationAudit(labels=LabelQuality(told_rows=1)))
    assert words.waste_finding(an_audit(mean_waste_bytes=-2.5e9)) == "Bounds lie 2.5 GB below the need on average"
    assert words.kept_out_finding(an_audit(), ["c/7", ""]) == (
        "9 attempts kept out: CARD_FULL 7, USER_QUARANTINED 2; 1 user quarantined (c/7, nobody in particular)"
    )


def test_groups_below_their_promise_are_named() -> None:
    """Three at most, the table marks all."""
    assert words.below_finding([an_audit("a")]) == ""
    assert words.below_finding([an_audit("a", below_promise=True)]).startswith("One group lies below")
    many = words.below_finding([an_audit(name, below_promise=True) for name in "abcde"])
    assert many.startswith("5 groups lie below")
    assert many.endswith("a, b, c and 2 more")


def test_on_a_terminal_of_80_columns_nothing_is_cut() -> None:
    """Each group is a sentence under its name, wrapped between words."""
    console = Console(file=io.StringIO(), width=80, highlight=False, force_terminal=True, no_color=True)
    print_audit(console, a_report())
    assert isinstance(console.file, io.StringIO)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 80] == []
    text = " ".join(" ".join(lines).split())
    assert "h100-80gb/torch/fsdp/one node 96 of 100 needs stayed within their bound: 96.0 %" in text
    assert "…" not in text


def test_more_groups_than_are_shown_are_counted() -> None:
    """Forty are shown; the answer holds 45 of 2,000."""
    text = printed(a_report(groups=[an_audit(f"group-{number:02}") for number in range(45)], groups_among=2_000))
    assert "group-39" in text
    assert "group-40" not in text
    assert "and 1,960 groups more: --output json has 45" in text
