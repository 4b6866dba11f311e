"""The card that a job asks for, or the part of it."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import job_of

from peakgate.memory.capacity import capability_of, capacity_of
from peakgate.memory.catalog.gpus import find_gpu
from peakgate.memory.job import Job

H100 = find_gpu("h100-80gb")


def a_job(gpu: dict[str, object]) -> Job:
    """A job that asks for a card."""
    return job_of({"model": {"preset": "gpt2"}, "gpu": gpu})


def test_without_a_card_there_is_none() -> None:
    """Neither a name nor bytes."""
    assert capacity_of(a_job({})) is None


def test_bytes_alone_are_all_usable() -> None:
    """Nothing is known of what a driver keeps of them."""
    found = capacity_of(a_job({"memory_bytes": 10**10}))
    assert found is not None
    assert (found.gpu, found.total_bytes, found.usable_bytes, found.is_part) == ("", 10**10, 10**10, False)


@pytest.mark.parametrize(
    ("memory_bytes", "want_kept", "want_part"),
    [
        (0, H100.reserved_bytes, False),
        (H100.total_bytes, H100.reserved_bytes, False),
        (H100.total_bytes + 10**9, H100.reserved_bytes, False),
        (H100.total_bytes * 95 // 100, H100.reserved_bytes * 95 // 100, False),
        (H100.total_bytes // 2, H100.reserved_bytes // 2, True),
        (1, 0, True),
    ],
)
def test_a_part_of_a_card_has_its_part_of_what_the_driver_keeps(memory_bytes: int, want_kept: int, want_part: bool) -> None:
    """The card keeps its name and its kernels, whatever of it the job gets; some hundredths less are the same card."""
    job = a_job({"type": "h100-80gb"} | ({"memory_bytes": memory_bytes} if memory_bytes else {}))
    found = capacity_of(job)
    assert found is not None
    assert (found.gpu, found.total_bytes, found.is_part) == ("h100-80gb", memory_bytes or H100.total_bytes, want_part)
    assert found.total_bytes - found.usable_bytes == pytest.approx(want_kept, abs=1)
    assert capability_of(job) == (9, 0)
