"""Cards that can run a job at all."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import job_of

from peakgate.memory.cards import cards_for, least_capability
from peakgate.memory.catalog.gpus import GPUS
from peakgate.memory.job import Job


def a_job_in(precision: dict[str, object] | None = None, **parts: object) -> Job:
    """A small model in these number formats."""
    document: dict[str, object] = {
        "model": {"preset": "llama-3.2-1b"},
        "batch": {"micro_batch_size": 1, "sequence_length": 128},
        "framework": {"name": "huggingface"},
        "precision": precision or {},
    }
    return job_of(document | parts)


@pytest.mark.parametrize(
    ("job", "want"),
    [
        (a_job_in(), (0, 0)),
        (a_job_in({"recipe": "amp-fp16"}), (0, 0)),
        (a_job_in({"recipe": "amp-bf16"}), (8, 0)),
        (a_job_in({"parameters": "bfloat16"}), (8, 0)),
        (a_job_in(framework={"name": "torchtune"}), (8, 0)),
        (a_job_in(attention={"implementation": "flash"}), (8, 0)),
        (a_job_in(lora={"base_dtype": "int8"}), (7, 5)),
        (a_job_in({"compute": "float8"}), (8, 9)),
        (a_job_in({"fp8": {"recipe": "blockwise"}}), (9, 0)),
        (a_job_in({"fp8": {"recipe": "mxfp8"}}), (10, 0)),
    ],
)
def test_formats_and_kernels_need_a_capability(job: Job, want: tuple[int, int]) -> None:
    """Stated ones and the framework's own."""
    assert least_capability(job) == want
    assert all(GPUS[card.name].compute_capability >= want for card in cards_for(job))


def test_cards_come_smallest_first_and_slices_only_for_one_gpu() -> None:
    """The order is that of usable bytes; a job of two GPUs gets whole ones."""
    one, two = cards_for(a_job_in()), cards_for(a_job_in(gpu={"count": 2}))
    assert [card.usable_bytes for card in one] == sorted(card.usable_bytes for card in one)
    assert {card.name for card in one} == set(GPUS)
    assert {card.name for card in two} == {name for name in GPUS if "/" not in name}


def test_a_slice_of_all_of_its_card_is_marked() -> None:
    """Seven compute slices of most cards, four of the A30."""
    marked = {card.name for card in cards_for(a_job_in()) if card.all_of_one}
    assert {"a30-24gb/4g.24gb", "h100-80gb/7g.80gb"} <= marked
    assert all(name.rpartition("/")[2].startswith(("7g", "4g.24gb")) for name in marked)
