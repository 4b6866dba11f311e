"""What becomes of a submission, by its judgement and the rules."""

from __future__ import annotations

import pytest
from tests.unit.hooks.slurm.building import a_suggestion, an_answer, rejected

from peakgate.hooks.asking import BESIDE, SERVICE, Judgement
from peakgate.hooks.slurm.rules import Mode, Override, Treatment, WithoutAnswer
from peakgate.hooks.slurm.steering import Steering
from peakgate.hooks.slurm.verdicts import Case, Outcome, outcome_of
from peakgate.hooks.slurm.wishes import Wishes
from peakgate.v1.prediction_pb2 import PredictResponse


def outcome(answer: PredictResponse | None, mode: str = "enforce", **more: object) -> Outcome:
    """What becomes of a job with this answer."""
    judgement = Judgement(answer=answer, by=str(more.pop("by", SERVICE)))
    return outcome_of(Case(judgement=judgement, treatment=Treatment(mode=Mode(mode)), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "mode", "want"),
    [
        ("ADMIT", "shadow", (True, "0123abcd", 0, "admitted")),
        ("ADMIT", "warn", (True, "0123abcd", 1, "admitted")),
        ("ADMIT", "enforce", (True, "0123abcd", 1, "admitted")),
        ("UNDECIDED", "shadow", (True, "0123abcd", 0, "admitted")),
        ("UNDECIDED", "enforce", (True, "0123abcd", 1, "admitted")),
        ("REJECT", "shadow", (True, "0123abcd", 0, "would_refuse")),
        ("REJECT", "warn", (True, "0123abcd", 3, "would_refuse")),
        ("REJECT", "enforce", (False, "gres", 3, "refused")),
    ],
)
def test_each_verdict_in_each_mode(verdict: str, mode: str, want: tuple[bool, str, int, str]) -> None:
    """Only a rejection under enforce refuses; shadow says nothing."""
    found = outcome(rejected() if verdict == "REJECT" else an_answer(verdict), mode)
    assert (found.reply.admits, found.reply.word, len(found.reply.says), found.outcome) == want


def test_a_refusal_says_what_is_too_large_and_how_to_try() -> None:
    """With the change in the job's own syntax, and the prediction to be explained."""
    answer = rejected()
    answer.suggestions.append(a_suggestion())
    found = outcome(answer, edit=lambda suggestion: "--micro-batch-size 2")
    assert [line.split(":")[0] for line in found.reply.says] == ["peakgate"] * 3
    text = "\n".join(found.reply.says)
    assert all(
        word in text for word in ("activations 90.0 GB", "10.0 GB too few", "--micro-batch-size 2", "#PEAKGATE try=", "explain 0123abcd")
    )


def test_a_change_that_was_not_looked_for_is_not_denied() -> None:
    """No line says that nothing fits."""
    judgement = Judgement(answer=rejected(), by=SERVICE, is_brief=True)
    found = outcome_of(Case(judgement=judgement, treatment=Treatment(mode=Mode.enforce)))
    assert len(found.reply.says) == 2
    assert "no change" not in "".join(found.reply.says)


def test_a_verdict_of_ones_own_is_stamped_unchecked() -> None:
    """Nothing is recorded that the stamp could name; the lines say so."""
    admitted, refused = outcome(an_answer(prediction=""), by=BESIDE), outcome(rejected(prediction=""), by=BESIDE)
    assert (admitted.reply.word, refused.reply.admits) == ("unchecked", False)
    assert all("not recorded" in found.reply.says[-1] for found in (admitted, refused))


@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({"override": Override(name="night", word="x")}, "override night"),
        ({"by_operator": True}, "operator"),
        ({"is_partial": True}, "partly read"),
    ],
)
def test_what_admits_a_job_that_does_not_fit(more: dict[str, object], want: str) -> None:
    """The message is seen all the same, and says why the job is admitted."""
    found = outcome(rejected(), "enforce", **more)
    assert (found.reply.admits, found.reply.word, found.outcome, found.admitted_by) == (True, "0123abcd", "would_refuse", want)
    assert len(found.reply.says) == 3
    assert outcome(rejected(), "warn", **more).admitted_by == ""


def test_a_try_that_was_not_granted_is_refused() -> None:
    """And told so, not asked to try again."""
    found = outcome(rejected(), wishes=Wishes(try_reason="deadline"))
    assert not found.reply.admits
    assert "not granted" in found.reply.says[-1]
    assert "#PEAKGATE try" not in found.reply.says[-1]


def test_a_steered_job_is_told_its_card() -> None:
    """What is changed goes back to the controller."""
    found = outcome(an_answer(), steering=Steering(sets={"tres_per_node": "gres:gpu:a100:1"}, label="a100"))
    assert dict(found.reply.sets) == {"tres_per_node": "gres:gpu:a100:1"}
    assert "asks for a100 now" in found.reply.says[-1]


@pytest.mark.parametrize(
    ("judgement", "without", "more", "want"),
    [
        (Judgement(problem="away", is_away=True), "allow", {}, (True, "unchecked", 0)),
        (Judgement(problem="away", is_away=True), "refuse", {}, (False, "access", 1)),
        (Judgement(problem="away", is_away=True), "refuse", {"by_operator": True}, (True, "unchecked", 0)),
        (Judgement(problem="away", is_away=True), "refuse", {"override": Override(name="a", word="x")}, (True, "unchecked", 0)),
        (Judgement(problem="heads do not divide"), "refuse", {}, (True, "unchecked", 1)),
        (Judgement(), "refuse", {}, (True, "-", 0)),
    ],
)
def test_without_an_answer(judgement: Judgement, without: str, more: dict[str, object], want: tuple[bool, str, int]) -> None:
    """Somebody who is away may refuse; a job that makes no sense, or that is none, never is."""
    treatment = Treatment(mode=Mode.enforce, without_answer=WithoutAnswer(without))
    found = outcome_of(Case(judgement=judgement, treatment=treatment, **more))  # type: ignore[arg-type]
    assert (found.reply.admits, found.reply.word, len(found.reply.says)) == want


@pytest.mark.parametrize(("verdict", "want"), [("ADMIT", 0), ("UNDECIDED", 0), ("REJECT", 1)])
def test_what_the_submit_host_has_told_is_not_told_again(verdict: str, want: int) -> None:
    """A refusal is one more line: that it is one, and how to try it anyway."""
    found = outcome(rejected() if verdict == "REJECT" else an_answer(verdict), is_told=True)
    assert len(found.reply.says) == want
    assert all("refused" in line for line in found.reply.says)
    assert outcome(rejected(), "warn", is_told=True).reply.says == ()


def test_a_job_that_may_get_a_card_that_is_too_small_is_told_so() -> None:
    """It is admitted, in one line that says what to ask for; not where it is steered, nor where the submit host has told it."""
    found = outcome(an_answer(), ask_for="h100", too_small="a100-40gb")
    (line,) = found.reply.says
    assert line == "peakgate: fits h100-80gb, not a100-40gb, which it may get as well: a GPU needs 60.0 GB; ask for gpu:h100"
    assert found.reply.admits
    assert "ask for" not in outcome(an_answer(), too_small="a100-40gb").reply.says[0]
    steered = outcome(an_answer(), too_small="a100-40gb", steering=Steering(sets={"gres": "gpu:h100:1"}, label="h100"))
    assert [line.split(": ")[1] for line in steered.reply.says] == ["fits", "asks for h100 now"]
    assert outcome(an_answer(), too_small="a100-40gb", is_told=True).reply.says == ()


def test_a_job_that_names_no_type_is_told_one_that_holds_it() -> None:
    """The cheapest change of all, and the only line about changes."""
    answer = rejected()
    answer.suggestions.append(a_suggestion())
    lines = outcome(answer, ask_for="h200").reply.says
    assert (len(lines), "gpu:h200;" in lines[1]) == (3, True)
