"""The verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.memory.job import Job
from peakgate.memory.prediction import FieldError, JobError, Prediction
from peakgate.server.assess import Assessor
from peakgate.server.decide import Decision, Ground, Verdict, best_changes, decide, oom_phase, retries
from peakgate.server.policy import Policy

GB = 1_000_000_000
AJob = Callable[..., Job]


def verdict_on(job: Job, assessor: Assessor) -> Decision:
    """The decision on a job's own figures."""
    return decide(job, assessor.assess(job), assessor)


def test_a_bound_within_the_card_is_admitted(a_job: AJob, assessor: Assessor) -> None:
    """The bound may be as large as the card, to the byte."""
    assert verdict_on(a_job(memory_bytes=20 * GB), assessor).verdict is Verdict.ADMIT


def test_a_bound_one_byte_above_the_card_is_rejected_when_everything_is_stated(a_job: AJob, assessor: Assessor) -> None:
    """Nothing was left open, so the rejection holds."""
    decision = verdict_on(a_job(memory_bytes=20 * GB - 1), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.REJECT, Ground.TOO_LARGE)


def test_the_operators_reserve_is_not_usable(a_job: AJob, assessor: Assessor) -> None:
    """The same job fits the bare card and not the card with a reserve."""
    job = a_job(memory_bytes=20 * GB)
    reserved = replace(assessor, policy=Policy(operator_reserve_bytes=1))
    assert verdict_on(job, reserved).verdict is Verdict.REJECT


def test_a_single_unstated_field_that_makes_it_fit_is_named(a_job: AJob, assessor: Assessor) -> None:
    """With flash it fits, without it does not: flash decides, and the figures with it are given."""
    decision = verdict_on(a_job(sequences=5, attention=None, memory_bytes=25 * GB), assessor)
    assert decision.verdict is Verdict.UNDECIDED
    assert decision.deciding == (("attention.implementation", "flash"),)
    assert decision.favourable is not None
    assert decision.favourable.bound_bytes == 20 * GB


def test_fields_that_only_together_make_it_fit_are_named_together(a_job: AJob, assessor: Assessor) -> None:
    """100 GB of activations: a fifth is too much, a tenth is too much, a fiftieth fits."""
    decision = verdict_on(a_job(sequences=10, attention=None, checkpointing=None, memory_bytes=13 * GB), assessor)
    assert [path for path, _ in decision.deciding] == ["attention.implementation", "checkpointing.mode"]


def test_what_is_offloaded_must_fit_the_nodes_memory(a_job: AJob, assessor: Assessor) -> None:
    """5 GB of optimizer states: a node of 5 GB has room, one byte less is a rejection, and an unknown size is not held against the job."""
    verdicts = [verdict_on(a_job(offload="cpu", host_memory_bytes=size), assessor) for size in (5 * GB, 5 * GB - 1, None)]
    assert [each.verdict for each in verdicts] == [Verdict.ADMIT, Verdict.REJECT, Verdict.ADMIT]
    assert verdicts[1].ground is Ground.HOST_TOO_LARGE


def test_a_card_that_is_too_small_is_named_before_the_nodes_memory(a_job: AJob, assessor: Assessor) -> None:
    """Both are too small: the GPU is what the service is asked about."""
    decision = verdict_on(a_job(offload="cpu", host_memory_bytes=GB, memory_bytes=14 * GB), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.REJECT, Ground.TOO_LARGE)


def test_a_rejection_holds_under_every_favourable_value(a_job: AJob, assessor: Assessor) -> None:
    """The states alone pass the card, whatever is not stated."""
    job = a_job(sequences=10, attention=None, checkpointing=None, memory_bytes=11 * GB)
    assert verdict_on(job, assessor).verdict is Verdict.REJECT


def test_no_card_is_undecided(a_job: AJob, assessor: Assessor) -> None:
    """Without a GPU there is nothing to hold the figures against."""
    decision = verdict_on(a_job(memory_bytes=None), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.UNDECIDED, Ground.NO_GPU)


def test_an_incomplete_job_is_undecided_when_its_states_fit(a_job: AJob, assessor: Assessor) -> None:
    """No micro-batch: the states alone are held against the card."""
    decision = verdict_on(a_job(sequences=None, memory_bytes=10 * GB), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.UNDECIDED, Ground.INCOMPLETE)


def test_an_incomplete_job_is_rejected_when_its_states_pass_the_card(a_job: AJob, assessor: Assessor) -> None:
    """Nothing that is missing could make the states smaller."""
    decision = verdict_on(a_job(sequences=None, memory_bytes=10 * GB - 1), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.REJECT, Ground.STATES_TOO_LARGE)


def test_what_could_not_be_read_is_never_a_rejection(a_job: AJob, assessor: Assessor) -> None:
    """It may be what makes the states smaller; with it the figures are told, and no more."""
    job = a_job(sequences=None, memory_bytes=10 * GB - 1)
    decision = verdict_on(replace(job, unread=("use_galore",)), assessor)
    assert (decision.verdict, decision.ground) == (Verdict.UNDECIDED, Ground.INCOMPLETE)


def test_favourable_values_that_exclude_each_other_are_taken_one_by_one(a_job: AJob, assessor: Assessor) -> None:
    """Flash and full checkpointing together are illegal here: the earlier one stays, and the decision is made with it."""

    def predict(job: Job) -> Prediction:
        if job.attention.implementation == "flash" and job.checkpointing.mode == "full":
            raise JobError("FIELD_INVALID", (FieldError(field="checkpointing.mode", description="excludes flash"),))
        return assessor.memory.predict(job)

    picky = replace(assessor, memory=replace(assessor.memory, predict=predict))
    job = a_job(sequences=5, attention=None, checkpointing=None, memory_bytes=25 * GB)
    assert best_changes(job, picky.assess(job), picky) == (("attention.implementation", "flash"),)
    assert verdict_on(job, picky).verdict is Verdict.UNDECIDED


def test_a_value_that_only_long_sequences_profit_from_is_left_out_of_a_short_one(a_job: AJob, assessor: Assessor) -> None:
    """A fused loss that would need more is not the most favourable one; where it needs less it is."""

    def needs(more: int) -> Assessor:
        def predict(job: Job) -> Prediction:
            plain = assessor.memory.predict(job)
            return replace(plain, required_bytes=plain.required_bytes + more * (job.loss.implementation == "fused"))

        open_fields = (("loss.implementation", "fused"), ("attention.implementation", "flash"))
        return replace(assessor, memory=replace(assessor.memory, predict=predict, favourable=lambda _: open_fields))

    job = a_job(sequences=5, attention=None, memory_bytes=11 * GB)
    for more, want in ((GB, ["attention.implementation"]), (-GB, ["loss.implementation", "attention.implementation"])):
        assert [path for path, _ in best_changes(job, needs(more).assess(job), needs(more))] == want


def test_the_first_phase_that_passes_the_card_is_named(a_job: AJob, assessor: Assessor) -> None:
    """The states fit, the forward pass does not; a job that fits has no such phase."""
    assert oom_phase(assessor.assess(a_job(memory_bytes=15 * GB))) == "forward"
    assert oom_phase(assessor.assess(a_job(memory_bytes=5 * GB))) == "load"
    assert oom_phase(assessor.assess(a_job())) == ""


def test_a_cache_that_passes_the_card_means_retries(a_job: AJob, assessor: Assessor) -> None:
    """20 GB are required and 24 GB would be reserved: between them the allocator retries, outside it does not."""
    assert retries(assessor.assess(a_job(memory_bytes=22 * GB)))
    assert not retries(assessor.assess(a_job(memory_bytes=24 * GB)))
    assert not retries(assessor.assess(a_job(memory_bytes=19 * GB)))
