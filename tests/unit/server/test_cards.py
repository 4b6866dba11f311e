"""The card to ask for: the smallest, the cheapest, or a share of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.memory.builders import job_of

from peakgate.calibration import Calibrator
from peakgate.memory.change import with_changes
from peakgate.memory.job import Job
from peakgate.server.assess import Assessor
from peakgate.server.cards import cheapest_gpu, memory_fraction, smallest_gpu
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy

GB = 1_000_000_000
AJob = Callable[..., Job]


def real(*order: str) -> Assessor:
    """The real memory model under the prior, with cards on offer."""
    return Assessor(memory=memory_model(), snapshot=Calibrator(epoch="test").snapshot(), policy=Policy(gpu_order=order))


def a_small_job(**parts: object) -> Job:
    """LoRA on Llama 3.2 1B in bfloat16: about 9 GB."""
    document: dict[str, object] = {
        "model": {"preset": "llama-3.2-1b"},
        "batch": {"micro_batch_size": 2, "sequence_length": 1024},
        "precision": {"recipe": "bf16"},
        "lora": {"rank": 8},
        "framework": {"name": "torchtune"},
        "gpu": {"type": "h100-80gb"},
    }
    return job_of(document | parts)


def test_the_smallest_may_be_a_slice(a_job: AJob, assessor: Assessor) -> None:
    """30 GB fit the half of a large card, which is a byte smaller than the middle one; 100 GB fit none."""
    assert smallest_gpu(a_job(sequences=2), assessor) == "large/half"
    assert smallest_gpu(a_job(sequences=9), assessor) == ""


def test_the_smallest_fits_and_no_smaller_card_does() -> None:
    """Of every card that can run the job, by a prediction on each."""
    job, assessor = a_small_job(), real()
    smallest = smallest_gpu(job, assessor)
    cards = {card.name: card for card in assessor.memory.cards(job) if not card.all_of_one}
    fitting = []
    for name in cards:
        changed = assessor.changed(job, (("gpu.type", name),))
        if changed is not None and changed.fits:
            fitting.append(name)
    assert "/" in smallest
    assert smallest == min(fitting, key=lambda name: (cards[name].usable_bytes, name))


def test_a_job_of_two_gpus_gets_no_slice() -> None:
    """NCCL does not talk between slices."""
    job = a_small_job(gpu={"type": "h100-80gb", "count": 2})
    assert "/" not in smallest_gpu(job, real())
    assert cheapest_gpu(job, real("h100-80gb/1g.20gb", "l4-24gb")) == "l4-24gb"


def test_the_cheapest_is_the_first_on_offer_that_fits() -> None:
    """The order is the operator's: a card that is too small is passed over, and without an offer nothing is said."""
    assert cheapest_gpu(a_small_job(), real("a100-40gb/1g.5gb", "a100-80gb", "l4-24gb")) == "a100-80gb"
    assert cheapest_gpu(a_small_job(), real("a100-40gb/1g.5gb")) == ""
    assert cheapest_gpu(a_small_job(), real()) == ""


def test_a_card_without_the_kernels_is_no_choice() -> None:
    """The V100 has no bfloat16; the same job in float16 may ask for it."""
    half = with_changes(a_small_job(), [("precision.recipe", "amp-fp16")])
    assert cheapest_gpu(a_small_job(), real("v100-32gb", "l4-24gb")) == "l4-24gb"
    assert cheapest_gpu(half, real("v100-32gb", "l4-24gb")) == "v100-32gb"


def test_stated_bytes_do_not_follow_to_another_card() -> None:
    """A job that states its card's bytes is judged on the other card's own."""
    job = a_small_job(gpu={"type": "h100-80gb", "memory_bytes": 85 * GB})
    assert smallest_gpu(job, real()) == smallest_gpu(a_small_job(), real())


def test_a_share_is_rounded_up_and_covers_the_bound() -> None:
    """Hundredths, of the card's total."""
    job, assessor = a_small_job(), real()
    assessment = assessor.assess(job)
    share = memory_fraction(job, assessment)
    assert assessment.capacity is not None
    assert round(100 * share) == pytest.approx(100 * share)
    assert share - 0.01 < assessment.bound_bytes / assessment.capacity.total_bytes <= share


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sequences": 7, "memory_bytes": 80 * GB}, "the whole card is needed"),
        ({"sequences": 9, "memory_bytes": 80 * GB}, "it does not fit"),
        ({"memory_bytes": None}, "no card is stated"),
        ({"memory_bytes": None, "gpu": "large/half"}, "a slice is not shared further"),
    ],
)
def test_no_share_is_named_where_none_can_be_asked_for(changes: dict[str, int], why: str, a_job: AJob, assessor: Assessor) -> None:
    """A quarter of the card is one, and each of these is none."""
    job = a_job(**changes)
    assert memory_fraction(job, assessor.assess(job)) == 0, why


def test_a_share_is_not_shared_further(a_job: AJob, assessor: Assessor) -> None:
    """A fraction is one of the whole card, which the job does not have."""
    job = a_job(memory_bytes=80 * GB)
    assessment = assessor.assess(job)
    assert assessment.capacity is not None
    part = replace(assessment, capacity=replace(assessment.capacity, is_part=True))  # type: ignore[type-var]  # the double is a dataclass
    assert memory_fraction(job, assessment) > 0
    assert memory_fraction(job, part) == 0
    assert memory_fraction(a_job(), assessor.assess(a_job())) == 0.25
    several = replace(a_job(), gpu=replace(a_job().gpu, count=2))
    assert memory_fraction(several, assessor.assess(several)) == 0
