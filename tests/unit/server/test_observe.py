"""What an ended attempt says about the need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peakgate.server.observe import LARGEST_CACHE_RATIO, Observed, in_use_bytes, observe, worst_gpu
from peakgate.server.store.records import FLAGS, Attempt, PeakRow

CARD = 80_000


def a_peak(**changes: object) -> PeakRow:
    """The whole job on one GPU."""
    row = PeakRow(
        cluster="c",
        node="n",
        gpu_uuid="GPU-0",
        job="1",
        restart=0,
        prediction="predictions/0",
        pid=0,
        pid_start_ticks=0,
        gpu_name="g",
        gpu_total_bytes=CARD,
        peak_bytes=60_000,
        source="sampled",
        torch_allocated_bytes=0,
        torch_reserved_bytes=0,
        first_us=0,
        last_us=5_000_000,
        peak_us=0,
        samples=1,
        gaps=0,
        flags=0,
        ended=1,
        uid=0,
        boot_id="b",
        agent_version="1",
        driver_version="1",
    )
    return replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


def an_attempt(*peaks: PeakRow, event: str = "finished", model_version: str = "1") -> Attempt:
    """A job that was predicted to need 50,000 bytes and to show 58,000."""
    return Attempt(
        prediction="predictions/0",
        job="1",
        restart=0,
        group="g",
        required_bytes=50_000,
        device_bytes=58_000,
        event=event,
        model_version=model_version,
        finished_us=5_000_000,
        peaks=peaks,
    )


def observed(attempt: Attempt) -> Observed:
    """What is said under the model that made the prediction."""
    return observe(attempt, model_version="1")


def test_a_finished_job_lies_between_blocks_in_use_and_device_peak() -> None:
    """The allocator's cache is what is not known without torch's figures."""
    observation = observed(an_attempt(a_peak())).observation
    assert observation is not None
    assert observation.upper_bytes == 60_000
    assert observation.lower_bytes == int(60_000 / LARGEST_CACHE_RATIO)
    assert (observation.required_bytes, observation.device_bytes, observation.finished_at) == (50_000, 58_000, 5.0)


def test_torchs_own_figures_narrow_the_interval() -> None:
    """device − reserved + allocated: what lies outside the allocator, and the blocks."""
    assert in_use_bytes(a_peak(torch_allocated_bytes=45_000, torch_reserved_bytes=52_000)) == 53_000


def test_figures_of_torch_that_contradict_the_device_are_not_used() -> None:
    """More reserved than the device shows: another process's figures."""
    contradiction = a_peak(torch_allocated_bytes=45_000, torch_reserved_bytes=70_000)
    assert in_use_bytes(contradiction) == int(60_000 / LARGEST_CACHE_RATIO)


def test_an_out_of_memory_on_a_full_card_needs_the_whole_card_or_more() -> None:
    """A lower bound and no upper one."""
    observation = observed(an_attempt(a_peak(peak_bytes=75_000), event="oom")).observation
    assert observation is not None
    assert (observation.lower_bytes, observation.upper_bytes) == (CARD, None)


def test_an_out_of_memory_on_a_shared_card_is_a_lower_bound_at_the_peak() -> None:
    """The rest of the card was another's."""
    observation = observed(an_attempt(a_peak(peak_bytes=40_000), event="oom")).observation
    assert observation is not None
    assert (observation.lower_bytes, observation.upper_bytes) == (40_000, None)


@pytest.mark.parametrize("event", ["failed", "cancelled"])
def test_a_job_that_ended_early_is_a_lower_bound(event: str) -> None:
    """Whether its second step was reached is not known."""
    observation = observed(an_attempt(a_peak(), event=event)).observation
    assert observation is not None
    assert (observation.lower_bytes, observation.upper_bytes) == (60_000, None)


@pytest.mark.parametrize("flag", ["censored", "truncated"])
def test_a_peak_that_was_not_seen_to_its_end_is_a_lower_bound(flag: str) -> None:
    """The agent says so itself."""
    observation = observed(an_attempt(a_peak(flags=FLAGS[flag]))).observation
    assert observation is not None
    assert observation.upper_bytes is None


@pytest.mark.parametrize("flags", [FLAGS["preallocated"], FLAGS["mps"]])
def test_a_figure_that_is_not_the_jobs_need_is_dropped_with_a_reason(flags: int) -> None:
    """Memory taken ahead of need, and shared figures."""
    found = observed(an_attempt(a_peak(flags=flags)))
    assert (found.observation, found.reason) == (None, "PEAK_NOT_OF_THE_JOB")


def test_a_full_card_of_a_job_that_went_on_is_dropped() -> None:
    """The allocator fills the card with its cache, which is no need."""
    assert observed(an_attempt(a_peak(peak_bytes=79_000))).reason == "CARD_FULL"


def test_a_job_of_which_nothing_was_seen_is_dropped() -> None:
    """It ended, and no agent ran there."""
    assert observed(an_attempt()).reason == "NO_PEAKS"


def test_the_worst_gpu_counts_once() -> None:
    """A wide job is one observation."""
    worst = worst_gpu([a_peak(), a_peak(gpu_uuid="GPU-1", peak_bytes=61_000), a_peak(gpu_uuid="GPU-2", peak_bytes=10)])
    assert worst is not None
    assert worst.gpu_uuid == "GPU-1"


def test_the_whole_jobs_row_outweighs_its_processes_and_takes_the_only_ones_torch_figures() -> None:
    """Processes peak at different moments, so the sum at a moment is what the card had to hold."""
    process = a_peak(pid=9, peak_bytes=65_000, torch_allocated_bytes=45_000, torch_reserved_bytes=52_000)
    worst = worst_gpu([a_peak(), process])
    assert worst is not None
    assert (worst.peak_bytes, worst.torch_reserved_bytes) == (60_000, 52_000)
    two = worst_gpu([a_peak(), process, replace(process, pid=10)])
    assert two is not None
    assert two.torch_reserved_bytes == 0


def test_a_prediction_of_another_memory_model_teaches_nothing() -> None:
    """Its error is not the error of the model in use."""
    assert observed(an_attempt(a_peak(), model_version="0")).reason == "OTHER_MODEL"
