"""What an ended attempt says of the need, rule by rule."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.server.attempts import CARD, SUBJECT, a_peak, a_process, an_attempt, of_helper

from peakgate.calibration import Subject, gate
from peakgate.calibration.prior import GIGABYTE
from peakgate.server.classing import RULES, Kind
from peakgate.server.gpu_figures import LARGEST_CACHE_RATIO
from peakgate.server.lengths import AtLength
from peakgate.server.observe import REASONS, Observed, observe, user_of
from peakgate.server.store.records import FLAGS, Attempt, PeakRow

IN_USE = int(60_000 / LARGEST_CACHE_RATIO)
JUST_FULL = 79_000


def observed(attempt: Attempt, at_length: AtLength | None = None) -> Observed:
    """What is said under the model that made the prediction."""
    return observe(attempt, model_version="1", received_at=6.0, at_length=at_length)


def ends(found: Observed) -> tuple[int, int | None]:
    """Between what the need lies."""
    assert found.observation is not None
    return found.observation.lower_bytes, found.observation.upper_bytes


def test_a_finished_job_lies_between_blocks_in_use_and_device_peak() -> None:
    """The allocator's cache is what is not known without torch's figures."""
    found = observed(an_attempt(a_peak()))
    assert (found.kind, found.reason, found.confidence) == (Kind.EXACT, "", "C")
    assert ends(found) == (IN_USE, 60_000)
    assert found.observation is not None
    assert (found.observation.subject, found.observation.finished_at, found.observation.received_at) == (SUBJECT, 5.0, 6.0)
    assert found.observation.config == "digest"


def test_it_says_where_it_was_seen_and_on_what_it_rests() -> None:
    """Node, GPU, source, steps and longest sequence of the worst GPU."""
    rows = (a_peak(node="n2", gpu_uuid="GPU-7"), a_process(node="n2", gpu_uuid="GPU-7"))
    found = observed(an_attempt(*rows, of_helper(node="n2", gpu_uuid="GPU-7", steps_done=40, longest_sequence=900), a_peak(peak_bytes=9)))
    assert (found.node, found.gpu_uuid, found.source, found.origin) == ("n2", "GPU-7", "sampled+torch", "agent")
    assert (found.steps_done, found.longest_sequence, found.observed_bytes, found.confidence) == (40, 900, 60_000, "B")


def test_the_owner_of_the_processes_is_the_user() -> None:
    """On a cluster, whose numbers are its own; nobody when it is root, whom containers share, or when several are seen."""
    owners = {
        "c/1000": [a_peak(uid=1000), a_process(uid=1000)],
        "": [a_peak(uid=0), a_process(uid=-1)],
        "d/7": [a_peak(cluster="d", uid=7), a_process(uid=0)],
    }
    assert {name: user_of(rows) for name, rows in owners.items()} == {name: name for name in owners}
    assert user_of([a_peak(uid=1), a_process(uid=2)]) == ""
    observation = observed(an_attempt(a_peak(uid=1000))).observation
    assert observation is not None
    assert observation.subject == replace(SUBJECT, user="c/1000")


def test_only_the_helper_tells_what_was_allocated() -> None:
    """The calibration takes such rows alone once it has enough of them."""
    for rows, want in (((a_peak(), a_process(), of_helper()), True), ((a_peak(), a_process()), False)):
        observation = observed(an_attempt(*rows)).observation
        assert observation is not None
        assert observation.has_statistics is want


def test_accounting_narrows_the_upper_end() -> None:
    """Of several processes the sum of their maxima; the lower end stays with what was seen at one moment."""
    rows = [a_process(pid, source="accounting", peak_bytes=35_000) for pid in (1, 2)]
    found = observed(an_attempt(a_peak(), a_process(1), a_process(2), *rows))
    assert (found.kind, found.source, found.confidence) == (Kind.EXACT, "accounting", "A")
    assert ends(found) == (IN_USE, 70_000)


def test_no_peaks() -> None:
    """It ended, and no agent ran there."""
    found = observed(an_attempt())
    assert (found.kind, found.reason, found.observation) == (Kind.DROPPED, "NO_PEAKS", None)


def test_a_prediction_of_another_memory_model_teaches_nothing() -> None:
    """Its error is not the error of the model in use; nor one of an older service, which did not say what the calibration is to know."""
    assert observed(replace(an_attempt(a_peak()), subject="")).reason == "OTHER_MODEL"
    assert observed(an_attempt(a_peak(), model_version="0")).reason == "OTHER_MODEL"


@pytest.mark.parametrize("flag", ["mps", "several"])
def test_a_shared_figure_teaches_nothing_even_when_the_card_ran_out(flag: str) -> None:
    """It bounds the need of neither job from below."""
    found = observed(an_attempt(a_peak(flags=FLAGS[flag], peak_bytes=JUST_FULL), event="oom"))
    assert (found.kind, found.reason, found.confidence) == (Kind.DROPPED, "SHARED_FIGURE", "X")


@pytest.mark.parametrize(
    "marked",
    [a_peak(gpu_uuid="GPU-1", peak_bytes=9, flags=FLAGS["several"]), a_peak(source="slurm", gpu_uuid="", flags=FLAGS["several"])],
    ids=["of a GPU that was not the worst", "of an import that does not count"],
)
def test_several_trainings_on_any_gpu_make_the_attempt_nobodys(marked: PeakRow) -> None:
    """The prediction was of one of them, and which one had the worst GPU is not known."""
    assert observed(an_attempt(a_peak())).kind is Kind.EXACT
    found = observed(an_attempt(a_peak(), marked))
    assert (found.kind, found.reason, found.observation) == (Kind.DROPPED, "SHARED_FIGURE", None)


@pytest.mark.parametrize(
    "attempt",
    [
        an_attempt(a_peak(peak_bytes=75_000), event="oom"),
        an_attempt(a_peak(peak_bytes=75_000, flags=FLAGS["oom"])),
        an_attempt(a_peak(peak_bytes=75_000), a_process(peak_bytes=75_000), of_helper(reserved=74_000, ooms=1), event="failed"),
        an_attempt(a_peak(peak_bytes=75_000, flags=FLAGS["oom"] | FLAGS["xid"])),
        an_attempt(a_peak(peak_bytes=75_000, flags=FLAGS["preallocated"]), event="oom"),
    ],
    ids=["event", "flag", "helper", "with an error of the hardware", "of a preallocated pool"],
)
def test_an_out_of_memory_on_its_own_card_needs_the_whole_card_or_more(attempt: Attempt) -> None:
    """A lower end and no upper one, whoever says it."""
    found = observed(attempt)
    assert (found.kind, found.reason, found.confidence) == (Kind.LOWER, "OUT_OF_MEMORY", "X")
    assert ends(found) == (CARD, None)


@pytest.mark.parametrize(
    ("peak", "total"),
    [(40_000, CARD), (40_000, 0)],
    ids=["the rest of the card was another's", "the card is not known"],
)
def test_another_out_of_memory_is_a_lower_end_at_the_peak(peak: int, total: int) -> None:
    """The need was at least what was seen."""
    assert ends(observed(an_attempt(a_peak(peak_bytes=peak, gpu_total_bytes=total), event="oom"))) == (peak, None)


def test_an_error_of_the_hardware_teaches_nothing() -> None:
    """On any GPU of the job: it ended, or ran slower, for another reason than its memory."""
    rows = (a_peak(), a_peak(gpu_uuid="GPU-1", peak_bytes=9, flags=FLAGS["xid"], xid=79))
    assert observed(an_attempt(*rows, event="failed")).reason == "HARDWARE_ERROR"


@pytest.mark.parametrize(("flag", "want_reason"), [("preallocated", "PREALLOCATED"), ("unattributed", "UNATTRIBUTED")])
def test_a_figure_that_is_not_the_jobs_need_teaches_nothing(flag: str, want_reason: str) -> None:
    """Memory taken ahead of need, and memory that belongs to no process."""
    found = observed(an_attempt(a_peak(flags=FLAGS[flag])))
    assert (found.kind, found.observation, found.reason) == (Kind.DROPPED, None, want_reason)


@pytest.mark.parametrize("event", ["failed", "cancelled"])
def test_a_job_that_ended_early_is_a_lower_end(event: str) -> None:
    """More may have come. A kill (137, 9) and the node's own out-of-memory come as these too, and are no GPU's."""
    found = observed(an_attempt(a_peak(), event=event))
    assert (found.kind, found.reason) == (Kind.LOWER, "CUT_SHORT")
    assert ends(found) == (60_000, None)


def test_a_gpu_that_was_lost_leaves_a_lower_end() -> None:
    """The agent says so itself, of any GPU."""
    found = observed(an_attempt(a_peak(), a_peak(gpu_uuid="GPU-1", peak_bytes=9, flags=FLAGS["truncated"])))
    assert (found.reason, *ends(found)) == ("CUT_SHORT", 60_000, None)


def test_an_end_on_a_nearly_full_card_is_a_lower_end_at_what_was_in_use() -> None:
    """An agent sees processes leave and not why: the last allocation may have failed, or the cache had grown that far."""
    attempt = an_attempt(a_peak(peak_bytes=78_000, flags=FLAGS["censored"]))
    found = observed(attempt)
    assert (found.reason, *ends(found)) == ("END_UNKNOWN", int(78_000 / LARGEST_CACHE_RATIO), None)
    assert observed(replace(attempt, ended_well=True)).kind is Kind.EXACT
    assert observed(replace(attempt, event="failed")).reason == "CUT_SHORT"


def test_a_killed_job_on_a_full_card_needs_what_was_in_use() -> None:
    """The cache had filled the card, and nothing failed for want of it."""
    assert ends(observed(an_attempt(a_peak(peak_bytes=JUST_FULL), event="cancelled"))) == (int(JUST_FULL / LARGEST_CACHE_RATIO), None)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_job_without_a_second_step_is_a_lower_end(steps: int) -> None:
    """The states that the first optimizer step makes were never met by a backward pass."""
    found = observed(an_attempt(a_peak(), a_process(), of_helper(steps_done=steps)))
    assert (found.reason, *ends(found)) == ("NO_SECOND_STEP", 52_000, None)


def test_uncounted_steps_are_no_evidence() -> None:
    """However short the job was seen: nobody counted."""
    assert observed(an_attempt(a_peak(last_us=1))).kind is Kind.EXACT


def test_the_allocator_alone_is_a_lower_end() -> None:
    """What lies outside it was not seen."""
    found = observed(an_attempt(of_helper(allocated=50_000, reserved=58_000)))
    assert (found.reason, found.source, *ends(found)) == ("NO_DEVICE_FIGURE", "torch", 50_000, None)


def test_a_mean_over_gpus_is_a_lower_end() -> None:
    """Slurm's figure of a task with several GPUs: the worst one had at least the mean."""
    found = observed(an_attempt(a_peak(source="slurm", flags=FLAGS["averaged"])))
    assert (found.reason, found.origin, found.confidence, *ends(found)) == ("AVERAGED", "sacct", "D", IN_USE, None)


def test_a_full_card_of_a_job_that_went_on_is_dropped() -> None:
    """The allocator fills the card with its cache, which is no need."""
    assert observed(an_attempt(a_peak(peak_bytes=JUST_FULL))).reason == "CARD_FULL"


def test_more_than_the_card_holds_did_not_fill_it() -> None:
    """KiB that came as bytes, 1024 times over: the gate asks for the unit."""
    found = observed(an_attempt(a_peak(peak_bytes=JUST_FULL * 1024)))
    assert found.observation is not None
    refusal = gate.judge_size(found.observation)
    assert refusal is not None
    assert (found.reason, refusal.reason) == ("", gate.ABOVE_CARD)


def test_a_full_card_is_no_riddle_to_the_helper() -> None:
    """It knows what of the peak was in use."""
    found = observed(an_attempt(a_peak(peak_bytes=JUST_FULL), a_process(peak_bytes=JUST_FULL), of_helper(reserved=78_000)))
    assert (found.kind, found.confidence, *ends(found)) == (Kind.EXACT, "B", 51_000, JUST_FULL)


def test_a_cache_that_was_given_back_makes_the_peak_an_upper_end() -> None:
    """The card ended its growth, not the need."""
    found = observed(an_attempt(a_peak(), a_process(), of_helper(alloc_retries=2)))
    assert (found.kind, found.reason, found.confidence, *ends(found)) == (Kind.UPPER, "CACHE_FLUSHED", "B", 52_000, 60_000)


HALF = replace(SUBJECT, required_bytes=25_000, device_bytes=29_000)


def half(tokens: int) -> Subject | None:
    """Half as much is predicted for 512 tokens; other lengths cannot be told."""
    return HALF if tokens == 512 else None


def test_a_capped_job_is_compared_with_its_longest_sequence() -> None:
    """Below the prediction for the cap it is no mismatch."""
    rows = (a_peak(peak_bytes=30_000), a_process(peak_bytes=30_000), of_helper(allocated=25_000, reserved=28_000, longest_sequence=512))
    found = observed(an_attempt(*rows), half)
    assert found.kind is Kind.EXACT
    assert found.observation is not None
    assert found.observation.subject == HALF


def test_a_capped_job_whose_longest_sequence_is_unknown_is_a_lower_end() -> None:
    """Of what the cap would need: compared with the prediction for the cap."""
    found = observed(an_attempt(a_peak(peak_bytes=20_000)), half)
    assert (found.kind, found.reason, found.confidence) == (Kind.LOWER, "LENGTH_UNKNOWN", "C")
    assert found.observation is not None
    assert (found.observation.subject.device_bytes, *ends(found)) == (58_000, int(20_000 / LARGEST_CACHE_RATIO), None)


def test_a_capped_job_that_ran_out_is_compared_with_the_cap() -> None:
    """The cap needs at least what a shorter sequence needed."""
    found = observed(an_attempt(a_peak(peak_bytes=75_000, longest_sequence=512), event="oom"), half)
    assert found.observation is not None
    assert (found.observation.subject.device_bytes, *ends(found)) == (58_000, CARD, None)


def test_an_attempt_is_named_apart_from_others_of_its_prediction() -> None:
    """Jobs that share a prediction, and restarts, are observations of their own."""
    names = []
    for attempt in (an_attempt(a_peak()), replace(an_attempt(a_peak()), job="2"), replace(an_attempt(a_peak()), restart=1)):
        found = observed(attempt).observation
        assert found is not None
        names.append(found.prediction)
    assert len(set(names)) == 3


def test_the_words_of_the_rules_are_frozen() -> None:
    """Dashboards and readers of the quarantine match them: words are only added."""
    assert REASONS == (
        "NO_PEAKS",
        "OTHER_MODEL",
        "SHARED_FIGURE",
        "OUT_OF_MEMORY",
        "HARDWARE_ERROR",
        "PREALLOCATED",
        "UNATTRIBUTED",
        "CUT_SHORT",
        "END_UNKNOWN",
        "NO_SECOND_STEP",
        "NO_DEVICE_FIGURE",
        "AVERAGED",
        "CARD_FULL",
        "LENGTH_UNKNOWN",
        "CACHE_FLUSHED",
    )
    assert all(rule.message and rule.kind is not Kind.EXACT for rule in RULES)


def test_the_page_has_every_rule_in_order() -> None:
    """docs/observations.md is what an operator reads."""
    text = (Path(__file__).parents[3] / "docs/observations.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\w+) \|", text, re.MULTILINE)
    assert rows == [("NO_PEAKS", "dropped"), *((rule.reason, str(rule.kind)) for rule in RULES)]


def test_the_page_has_what_the_margin_refuses() -> None:
    """Also what is held against the prediction afterwards, with its limits."""
    text = (Path(__file__).parents[3] / "docs/observations.md").read_text()
    below, above = (text.partition(f"`{word}`")[2] for word in (gate.FAR_BELOW_PREDICTION, gate.FAR_ABOVE_PREDICTION))
    assert f"{gate.LOWEST_RATIO}" in below[:80]
    assert f"{gate.HIGHEST_RATIO} times it and {gate.HIGHEST_EXTRA_BYTES / GIGABYTE:g} GB" in above[:80]
