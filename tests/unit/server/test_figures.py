"""Which source's figure counts for a GPU."""

from __future__ import annotations

import pytest
from tests.unit.server.attempts import CARD, SECOND, a_peak, a_process, of_helper

from peakgate.server.figures import figures_of, worst_of
from peakgate.server.gpu_figures import LARGEST_CACHE_RATIO, GpuFigures
from peakgate.server.store.records import FLAGS, PeakRow


def figures(*rows: PeakRow) -> GpuFigures:
    """Of rows that are all of one GPU."""
    (found,) = figures_of(rows)
    return found


def test_the_whole_jobs_row_outweighs_its_processes() -> None:
    """Processes peak at different moments, so the largest sum at one moment is what the card had to hold."""
    found = figures(a_peak(), a_process(1, peak_bytes=65_000), a_process(2, peak_bytes=64_000))
    assert (found.source, found.least_peak_bytes, found.most_peak_bytes, found.confidence) == ("sampled", 60_000, 60_000, "C")


def test_without_the_whole_jobs_row_its_largest_process_counts() -> None:
    """A reporter of single processes only."""
    assert figures(a_process(1, peak_bytes=40_000), a_process(2, peak_bytes=30_000)).most_peak_bytes == 40_000


def test_accounting_of_the_only_process_is_exact() -> None:
    """The driver's own maximum, above what samples caught."""
    found = figures(a_peak(), a_process(), a_process(source="accounting", peak_bytes=66_000))
    assert (found.source, found.confidence, found.least_peak_bytes, found.most_peak_bytes) == ("accounting", "A", 66_000, 66_000)


def test_accounting_of_the_whole_job_is_exact_without_its_processes() -> None:
    """An agent whose spool was full gives up the rows of single processes first; with a second process it is of the first one only."""
    whole = a_peak(source="accounting", peak_bytes=66_000)
    assert figures(a_peak(), whole).least_peak_bytes == figures(a_peak(), a_process(), whole).most_peak_bytes == 66_000
    crowded = figures(a_peak(), a_process(1), a_process(2), whole)
    assert (crowded.source, crowded.most_peak_bytes) == ("sampled", 60_000)


def test_accounting_of_several_processes_is_an_interval() -> None:
    """Their maxima need not have come together: the largest sampled sum is the least, the sum of the maxima the most."""
    rows = [a_process(pid, source="accounting", peak_bytes=35_000) for pid in (1, 2)]
    found = figures(a_peak(), a_process(1, peak_bytes=30_000), a_process(2, peak_bytes=30_000), *rows)
    assert (found.source, found.confidence, found.least_peak_bytes, found.most_peak_bytes) == ("accounting", "A", 60_000, 70_000)


def test_accounting_of_some_processes_only_is_not_used() -> None:
    """The sum would lack the others."""
    found = figures(a_peak(), a_process(1), a_process(2), a_process(1, source="accounting", peak_bytes=66_000))
    assert (found.source, found.most_peak_bytes) == ("sampled", 60_000)


def test_accounting_far_below_the_samples_is_of_something_else() -> None:
    """Such as a driver that does not count the context: then what was seen counts."""
    found = figures(a_peak(), a_process(), a_process(source="accounting", peak_bytes=50_000))
    assert (found.source, found.confidence, found.most_peak_bytes) == ("sampled", "C", 60_000)


def test_processes_that_followed_each_other_do_not_add_up() -> None:
    """A step that prepares the data and has ended shares nothing with the training."""
    before = {"first_us": 0, "last_us": SECOND}
    after = {"first_us": 2 * SECOND, "last_us": 9 * SECOND}
    rows = [a_process(1, peak_bytes=9_000, **before), a_process(1, source="accounting", peak_bytes=9_500, **before)]
    rows += [a_process(2, **after), a_process(2, source="accounting", peak_bytes=61_000, **after)]
    found = figures(a_peak(last_us=9 * SECOND), *rows)
    assert (found.source, found.least_peak_bytes, found.most_peak_bytes) == ("accounting", 61_000, 61_000)


def test_the_helper_says_what_the_blocks_in_use_were() -> None:
    """device − reserved + allocated: what lies outside the allocator, and the blocks. Two sources that agree are class B."""
    found = figures(a_peak(), a_process(), of_helper(allocated=50_000, reserved=58_000))
    assert (found.in_use_bytes, found.most_peak_bytes, found.confidence, found.source) == (52_000, 60_000, "B", "sampled")


def test_without_the_helper_the_largest_cache_is_taken_off() -> None:
    """What is not known is how much of the peak the allocator only kept."""
    assert figures(a_peak()).in_use_bytes == int(60_000 / LARGEST_CACHE_RATIO)


def test_a_reserved_peak_just_above_the_samples_is_a_sample_that_was_missed() -> None:
    """Within 3 % of the card: the allocator's own figure is the higher end, and only its blocks are the lower one."""
    found = figures(a_peak(), a_process(), of_helper(allocated=55_000, reserved=62_000))
    assert (found.in_use_bytes, found.most_peak_bytes, found.confidence) == (55_000, 62_000, "B")


def test_figures_of_the_helper_that_contradict_the_device_are_not_used() -> None:
    """Far more reserved than the device shows: another process's figures."""
    found = figures(a_peak(), a_process(), of_helper(allocated=45_000, reserved=75_000))
    assert not found.has_helper
    assert found.in_use_bytes == int(60_000 / LARGEST_CACHE_RATIO)


def test_the_helpers_figures_of_one_of_two_processes_are_not_used() -> None:
    """What the other one has in use is not known."""
    assert not figures(a_peak(), a_process(9), a_process(10), of_helper(pid=9)).has_helper


def test_the_figures_of_an_asynchronous_allocator_are_not_used() -> None:
    """torch does not have them; NVML does."""
    found = figures(a_peak(), a_process(), of_helper(flags=FLAGS["async_allocator"]))
    assert (found.has_helper, found.most_peak_bytes) == (False, 60_000)


def test_only_the_helper_reports() -> None:
    """Its reserved bytes are all that is known of the device."""
    found = figures(of_helper(allocated=50_000, reserved=58_000))
    assert (found.source, found.most_peak_bytes, found.confidence) == ("torch", 58_000, "D")


def test_a_figure_that_fell_in_between_is_no_staircase() -> None:
    """A sample after the peak does not show it any more."""
    assert figures(a_peak(flags=FLAGS["fluctuating"])).confidence == "D"


@pytest.mark.parametrize("source", ["slurm", "prometheus"])
def test_an_import_counts_only_where_no_agent_looked(source: str) -> None:
    """And is of the lowest class."""
    imported = a_peak(source=source, peak_bytes=70_000, gpu_uuid="GPU-imported")
    found = figures(imported)
    assert (found.source, found.confidence, found.most_peak_bytes) == (source, "D", 70_000)
    assert [each.source for each in figures_of([imported, a_peak()])] == ["sampled"]


def test_the_worst_gpu_is_the_highest_or_one_that_ran_out() -> None:
    """An out-of-memory is told by the GPU where it happened, even if another one was fuller."""
    high, low = a_peak(gpu_uuid="GPU-1", peak_bytes=61_000), a_peak(gpu_uuid="GPU-2", peak_bytes=30_000)
    worst = worst_of(figures_of([a_peak(), high, low]))
    assert worst is not None
    assert worst.gpu_uuid == "GPU-1"
    ran_out = worst_of(figures_of([a_peak(), high, low, of_helper(gpu_uuid="GPU-2", reserved=30_000, allocated=29_000, ooms=1)]))
    assert ran_out is not None
    assert (ran_out.gpu_uuid, ran_out.total_bytes) == ("GPU-2", CARD)
    assert worst_of([]) is None
