"""What is said of a job that leaves most of its card free."""

from __future__ import annotations

from collections.abc import Callable

from peakgate.memory.job import Job
from peakgate.server.assess import Assessor
from peakgate.server.notes import predict_notes, suggest_notes

GB = 1_000_000_000
AJob = Callable[..., Job]


def test_a_job_that_uses_its_card_gets_no_note(a_job: AJob, assessor: Assessor) -> None:
    """Nor does one that does not fit: half of the card is the line."""
    for sequences in (3, 7, 9):
        job = a_job(sequences=sequences)
        assert predict_notes(job, assessor.assess(job)) == ()
        assert suggest_notes(job, assessor.assess(job), smallest_gpu="middle", largest_micro_batch_size=7) == ()


def test_predict_says_what_is_free_and_which_share_would_do(a_job: AJob, assessor: Assessor) -> None:
    """20 of 80 GB: a quarter of the card."""
    free, share = predict_notes(a_job(), assessor.assess(a_job()))
    assert free.startswith("60.0 GB of the 80.0 GB usable of the card stay free")
    assert 'gpu-fraction: "0.25"' in share
    assert "nvidia.com/gpumem-percentage: 25 " in share


def test_suggest_names_every_way_to_use_it_better(a_job: AJob, assessor: Assessor) -> None:
    """The smaller card, the share, the larger micro-batch."""
    (note,) = suggest_notes(a_job(), assessor.assess(a_job()), smallest_gpu="small", largest_micro_batch_size=7)
    for want in ("60.0 GB", "small would do", "0.25 of the card", "a micro-batch of 7 fits it"):
        assert want in note


def test_a_way_that_is_none_is_not_named(a_job: AJob, assessor: Assessor) -> None:
    """The stated card is the smallest, and the stated micro-batch the largest."""
    job = a_job(gpu="large", memory_bytes=None)
    (note,) = suggest_notes(job, assessor.assess(job), smallest_gpu="large", largest_micro_batch_size=1)
    assert "large would do" not in note
    assert "micro-batch" not in note
