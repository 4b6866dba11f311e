"""The lines that a submitter reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.message import MARK, WIDTH, Told, lines_of, plain
from peakgate.v1.prediction_pb2 import Capacity, LedgerLine, Peak, PredictResponse, Suggestion, Verdict

GB = 10**9
ID = "predictions/0123456789abcdef0123456789abcdef"


def an_answer(
    *,
    verdict: Verdict.ValueType = Verdict.VERDICT_REJECT,
    reason: str = "activations: 61.0 GB at the peak in backward; the worst GPU needs 92.1 GB",
    bound_gb: float = 92.1,
    suggestions: tuple[Suggestion, ...] = (),
    prediction: str = ID,
) -> PredictResponse:
    """An answer on an 80 GB card."""
    return PredictResponse(
        verdict=verdict,
        reason=reason,
        prediction=prediction,
        peak=Peak(bound_bytes=int(bound_gb * GB)),
        capacity=Capacity(gpu="h100-80gb", usable_bytes=85 * GB),
        peak_phase="backward",
        ledger=[
            LedgerLine(category="activations", item="saved for the backward pass", bytes=60 * GB),
            LedgerLine(category="activations", item="input batch", bytes=GB),
            LedgerLine(category="optimizer_states", item="adamw states", bytes=20 * GB),
        ],
        suggestions=suggestions,
    )


def a_suggestion(*, fits: bool = True, title: str = "micro-batch 1", time: float = 1.05) -> Suggestion:
    """A change of the batch."""
    found = Suggestion(title=title, fits=fits, bound_bytes=60 * GB, relative_step_time=time)
    found.changes["batch.micro_batch_size"].number_value = 1
    return found


def test_a_job_that_does_not_fit_has_three_lines() -> None:
    """What is too large and by how much, the cheapest change, what happens and where the rest stands."""
    told = Told(change="--per_device_train_batch_size 1 (train.sh)", outcome="refused", try_with="to try it: --peakgate-try REASON")
    assert lines_of(an_answer(suggestions=(a_suggestion(),)), told) == [
        "peakgate: activations 61.0 GB at the peak in backward: a GPU needs 92.1 GB, h100-80gb has 85.0 GB, 7.1 GB too few",
        "peakgate: cheapest change: --per_device_train_batch_size 1 (train.sh) (then 60.0 GB, 5 % slower)",
        "peakgate: refused; to try it: --peakgate-try REASON; more: peakgate explain 0123456789abcdef0123456789abcdef",
    ]


@pytest.mark.parametrize("outcome", ["admitted, for a part of the launch is not in the object", f"admitted by override: {'long ' * 40}"])
def test_the_name_of_the_prediction_is_never_cut(outcome: str) -> None:
    """It leads to all the rest: what happens now is cut in its place."""
    last = lines_of(an_answer(), Told(outcome=outcome))[-1]
    assert last.startswith("peakgate: admitted")
    assert last.endswith("; more: peakgate explain 0123456789abcdef0123456789abcdef")
    assert len(last) <= WIDTH


@pytest.mark.parametrize("phase", ["backward", "the optimizer's first step of an accumulation"])
@pytest.mark.parametrize("gpu", ["a100-80gb/3g.40gb", "rtx-pro-6000-blackwell-server-edition-96gb/2g.48gb+me.all", "\u2026" * 80])
def test_the_figure_of_the_first_line_is_never_cut(gpu: str, phase: str) -> None:
    """The phase gives way, and a long name of a card is shortened between its ends."""
    answer = an_answer()
    answer.capacity.gpu, answer.peak_phase = gpu, phase
    line = lines_of(answer)[0]
    assert line.startswith("peakgate: activations 61.0 GB")
    assert "a GPU needs 92.1 GB, " in line
    assert line.endswith(" has 85.0 GB, 7.1 GB too few")
    assert len(line) <= WIDTH


def test_both_ends_of_a_long_name_are_kept() -> None:
    """The card, and the slice of it."""
    answer = an_answer()
    answer.capacity.gpu = "rtx-pro-6000-blackwell-server-edition-96gb/2g.48gb+me.all"
    assert ", rtx-pro-6...b/2g.48gb+me.all has 85.0 GB" in lines_of(answer)[0]


def test_the_first_change_that_fits_is_shown() -> None:
    """They come cheapest first; in the job document's words where the launch has no place for it."""
    lines = lines_of(an_answer(suggestions=(a_suggestion(fits=False), a_suggestion(time=0))))
    assert lines[1] == "peakgate: cheapest change: batch.micro_batch_size: 1 (then 60.0 GB)"


def test_what_comes_nearest_is_shown_where_nothing_fits() -> None:
    """And said so."""
    assert lines_of(an_answer(suggestions=(a_suggestion(fits=False),)))[1].startswith(
        "peakgate: nothing fits on these GPUs, nearest: batch."
    )
    assert lines_of(an_answer())[1] == "peakgate: no change on the list makes it fit on these GPUs"


def test_a_long_change_keeps_what_it_comes_to() -> None:
    """The change is cut, not its result."""
    line = lines_of(an_answer(suggestions=(a_suggestion(),)), Told(change="--flag value " * 30))[1]
    assert line.endswith("... (then 60.0 GB, 5 % slower)")
    assert len(line) <= WIDTH


def test_a_change_is_whole_where_a_shorter_result_leaves_room() -> None:
    """Its values are what somebody types."""
    change = "--gradient_accumulation_steps 64 --per_device_train_batch_size 8 (train.sh)"
    line = lines_of(an_answer(suggestions=(a_suggestion(),)), Told(change=change))[1]
    assert line == f"peakgate: cheapest change: {change} (then 60.0 GB)"
    longer = f"--bf16 {change}"
    assert lines_of(an_answer(suggestions=(a_suggestion(),)), Told(change=longer))[1] == f"peakgate: cheapest change: {longer}"


def test_a_job_that_fits_has_one_line() -> None:
    """Marked where the service did not answer."""
    answer = an_answer(verdict=Verdict.VERDICT_ADMIT, bound_gb=60)
    assert lines_of(answer) == ["peakgate: fits: a GPU needs 60.0 GB of 85.0 GB of h100-80gb"]
    assert lines_of(answer, Told(unserved="predicted on this host, the service did not answer"))[0].endswith(
        "of h100-80gb (predicted on this host, the service did not answer)"
    )


def test_without_an_id_the_reason_stands_in_its_place() -> None:
    """There is nothing to explain that nobody stored."""
    answer = an_answer(prediction="")
    assert lines_of(answer, Told(outcome="submitted all the same", unserved="predicted on this host"))[2] == (
        "peakgate: submitted all the same; predicted on this host"
    )


def test_a_job_that_cannot_be_judged_says_what_decides() -> None:
    """In as many lines as there are, between words."""
    answer = an_answer(
        verdict=Verdict.VERDICT_UNDECIDED, reason="batch.sequence_lengths.max is not stated and decides: " + "as assumed " * 40
    )
    lines = lines_of(answer)
    assert lines[0].startswith("peakgate: cannot be judged: batch.sequence_lengths.max is not stated")
    assert (len(lines), lines[2].endswith("...")) == (3, True)


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b]0;owned\x07", "one\nsbatch: Submitted batch job 1", "\u202egnp.exe", "\r", "\ud800"])
def test_a_hostile_name_moves_no_cursor(hostile: str) -> None:
    """What users chose is spelled out, and stays on its line."""
    line = plain(f"not checked: {hostile}")
    assert line.startswith(MARK)
    assert line.isascii()
    assert line.isprintable()


@given(st.text(max_size=400), st.text(max_size=400), st.sampled_from([1, 2, 3]))
def test_whatever_is_said_there_are_three_lines_at_most(reason: str, change: str, verdict: int) -> None:
    """Of at most the width, in printable ASCII."""
    reason = reason.encode("utf-8", "ignore").decode()
    answer = an_answer(verdict=Verdict.ValueType(verdict), reason=reason, suggestions=(a_suggestion(),))
    lines = lines_of(answer, Told(change=change, outcome=change, try_with=reason, unserved=change))
    assert 1 <= len(lines) <= 3
    assert all(line.isascii() and line.isprintable() and len(line) <= WIDTH for line in lines)


def test_a_word_without_an_end_hides_nothing() -> None:
    """A line is cut between words only where most of it is kept."""
    line = plain(f"what the launch says is no job: {'x' * 500}: is not a field")
    assert (len(line) > WIDTH - 8, line.endswith("xxx ...")) == (True, True)
