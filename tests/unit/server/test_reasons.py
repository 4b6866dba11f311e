"""The sentences of an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.calibration.trust import GROUP_STALE, Trust, reasons_of_service
from peakgate.memory.job import Job
from peakgate.memory.prediction import LedgerLine
from peakgate.server.assess import Assessor
from peakgate.server.decide import Decision, Ground, Verdict, decide
from peakgate.server.policy import Policy
from peakgate.server.reasons import DISTRUST, largest_category, reason, warnings
from peakgate.server.suggest import advise

GB = 1_000_000_000
AJob = Callable[..., Job]


def reason_for(job: Job, assessor: Assessor) -> str:
    """The reason that a submitter reads."""
    assessment = assessor.assess(job)
    return reason(decide(job, assessment, assessor), assessment, advise(job, assessment, assessor).advice)


def warnings_for(job: Job, assessor: Assessor) -> tuple[str, ...]:
    """The warnings beside the verdict on a job."""
    assessment = assessor.assess(job)
    return warnings(decide(job, assessment, assessor), assessment)


def test_a_rejection_begins_with_the_category_that_is_too_large(a_job: AJob, assessor: Assessor) -> None:
    """Then come figures with their unit, and what to do."""
    text = reason_for(a_job(sequences=5, memory_bytes=25 * GB), assessor)
    assert text.startswith("activations: 50.0 GB")
    assert "attention.implementation=flash" in text
    assert "20.0 GB" in text


def test_a_rejection_without_a_remedy_says_so(a_job: AJob, assessor: Assessor) -> None:
    """States that no fix of the list makes smaller."""
    text = reason_for(a_job(sequences=None, memory_bytes=5 * GB), assessor)
    assert text.startswith("parameters: 10.0 GB")
    assert "more GPUs" in text


def test_an_undecided_job_is_told_the_field_and_both_outcomes(a_job: AJob, assessor: Assessor) -> None:
    """As assumed and with the favourable value."""
    text = reason_for(a_job(sequences=5, attention=None, memory_bytes=25 * GB), assessor)
    assert text.startswith("attention.implementation is not stated and decides")
    assert "60.0 GB" in text
    assert "20.0 GB and fits" in text


def test_no_gpu_is_told_with_all_figures(a_job: AJob, assessor: Assessor) -> None:
    """The need is known even without a card."""
    assert "20.0 GB" in reason_for(a_job(memory_bytes=None), assessor)
    assert "gpu.type" in reason_for(a_job(memory_bytes=None), assessor)


def test_retries_are_a_warning_that_names_the_remedy(a_job: AJob, assessor: Assessor) -> None:
    """Only when the cache passes the card."""
    assert "expandable_segments" in " ".join(warnings_for(a_job(memory_bytes=22 * GB), assessor))
    assert warnings_for(a_job(), assessor) == ()


def test_only_an_admitted_job_is_said_to_run(a_job: AJob, assessor: Assessor) -> None:
    """The point figure fits and the bound does not: whatever the verdict, it is not that the job runs."""
    careful = replace(assessor, policy=Policy(operator_reserve_bytes=GB))
    assessment = replace(careful.assess(a_job(memory_bytes=22 * GB)), bound_bytes=23 * GB)
    for verdict in (Verdict.REJECT, Verdict.UNDECIDED):
        assert warnings(Decision(verdict=verdict, ground=Ground.TOO_LARGE), assessment) == ()
    assert warnings(Decision(verdict=Verdict.ADMIT, ground=Ground.FITS), assessment)


def test_an_offload_that_a_node_cannot_hold_begins_with_what_is_offloaded(a_job: AJob, assessor: Assessor) -> None:
    """The category, both sizes, the field that states the node's memory, and the way out."""
    text = reason_for(a_job(offload="cpu", host_memory_bytes=2 * GB), assessor)
    assert text.startswith("optimizer_states: ")
    assert "5.0 GB of host memory and has 2.0 GB (node.host_memory_bytes)" in text
    assert "offload.optimizer=none" in text


def test_an_offload_to_an_unknown_node_is_a_warning(a_job: AJob, assessor: Assessor) -> None:
    """That nothing was checked is said; a stated size needs no warning."""
    assert "not checked" in " ".join(warnings_for(a_job(offload="cpu"), assessor))
    assert warnings_for(a_job(offload="cpu", host_memory_bytes=6 * GB), assessor) == ()


def test_lines_of_a_category_are_added_up() -> None:
    """Two lines of parameters outweigh one of activations."""
    lines = (("parameters", 6), ("activations", 10), ("parameters", 5))
    ledger = tuple(LedgerLine(category=category, item="x", bytes=size) for category, size in lines)
    assert largest_category(ledger) == ("parameters", 11)


def test_a_calibration_that_is_not_trusted_is_a_warning(a_job: AJob, assessor: Assessor) -> None:
    """With every reason, as a word to search for and as a sentence; each reason that a snapshot gives has one."""
    assessment = replace(assessor.assess(a_job()), distrust=tuple(DISTRUST))
    (text,) = warnings(decide(a_job(), assessment, assessor), assessment)
    assert all(word in text and sentence in text for word, sentence in DISTRUST.items())
    given = Trust(chances=(0.0,) * 200, kept_out_share=1.0).reasons(0.05)
    counted = reasons_of_service(clamped_share=1.0, silent_share=1.0)
    assert {*given, *counted, GROUP_STALE} == set(DISTRUST)
