"""The cost of a plan: the seeds' order, arrays of plans, and why a plan costs what it does."""

from __future__ import annotations

from dataclasses import fields, replace
from time import process_time
from typing import cast

import numpy as np
import pytest
from tests.unit.memory.builders import FAMILY_SIZES, a_job, a_plan, a_routed_transformer, a_transformer, plan_of, textbook_13b
from tests.unit.memory.steptimes import Changes, a_card, of_the_seeds, time_of

from peakgate.memory.change import with_changes
from peakgate.memory.job import Lora
from peakgate.memory.plan import Plan
from peakgate.memory.step_time import PARTS, Sizes, card_of, relative, sizes_of, step_time, why

CARDS = ("a100-80gb", "h100-80gb")
FLASH: Changes = {"attention.implementation": "flash"}
SELECTIVE: Changes = {"checkpointing.mode": "selective"}
FULL: Changes = {"checkpointing.mode": "full"}
SMALLER: Changes = {"batch.micro_batch_size": 4, "batch.gradient_accumulation_steps": 2}
OFFLOADED: Changes = {"offload.optimizer": "cpu"}


def sharded(kind: str) -> Changes:
    """Another kind of data parallelism."""
    return {"parallelism.sharding": kind}


def tensor(degree: int) -> Changes:
    """Tensor and sequence parallelism over the job's own GPUs, at the same global batch."""
    accumulated: Changes = {"batch.gradient_accumulation_steps": degree}
    return {"parallelism.tensor": degree, "parallelism.sequence_parallel": True, **accumulated}


def pipeline(degree: int) -> Changes:
    """Pipeline parallelism over the job's own GPUs, at the same global batch."""
    return {"parallelism.pipeline": degree, "batch.gradient_accumulation_steps": degree}


@pytest.mark.parametrize("card", CARDS)
def test_the_seeds_order_comes_out(card: str) -> None:
    """Lesson 6, section 3: FlashAttention, ZeRO, a smaller micro-batch, full checkpointing, then tensor and pipeline parallelism and
    offload.

    Three places of the list do not follow from constants, and tests of their own below say why: selective recomputation, ZeRO-3, and
    tensor parallelism over two GPUs of a node.
    """
    order = [FLASH, sharded("zero1"), sharded("zero2"), SMALLER, FULL, tensor(8), pipeline(8), OFFLOADED]
    costs = [of_the_seeds(change, card=card) for change in order]
    assert costs == sorted(costs)


def test_selective_recomputation_moves_the_scores_again() -> None:
    """s / (18h + 3s) is 5 % of the FLOP here, but the unfused core reads and writes its scores once more: dearer than a smaller
    micro-batch.

    Without them it is as the seeds say: under FlashAttention it costs 2 %.
    """
    assert of_the_seeds(SMALLER) < of_the_seeds(SELECTIVE) < of_the_seeds(FULL)
    assert of_the_seeds({**FLASH, **SELECTIVE}) / of_the_seeds(FLASH) == pytest.approx(1.02, abs=0.01)


def test_the_communication_of_zero3_is_hidden_inside_a_node() -> None:
    """1.5 times the volume costs nothing where NVLink hides it behind 16,384 tokens of compute; between nodes of plain Ethernet it is what
    costs."""
    assert of_the_seeds(sharded("zero3")) < 1
    job = textbook_13b({"gpu.count": 8, "node.gpus": 1, "batch.micro_batch_size": 1})
    slow = a_card("l4-24gb")
    plain, sharded3 = time_of(job, slow), time_of(with_changes(job, sharded("zero3").items()), slow)
    assert relative(plain, sharded3) > 1.2
    assert "1.5× the data parallel communication" in why(plain, sharded3)


def test_tensor_parallelism_over_two_gpus_is_cheaper_than_full_checkpointing() -> None:
    """Over NVLink its all-reduces take 6 % of the step, less than a third of it for a second forward pass."""
    assert of_the_seeds(tensor(2)) < of_the_seeds(FULL) < of_the_seeds(tensor(8)) < of_the_seeds(pipeline(8))


def test_an_unchanged_plan_costs_one() -> None:
    """Relative to itself every plan costs 1, and nothing is to be said of it."""
    before = time_of(textbook_13b(), a_card())
    assert relative(before, before) == 1
    assert why(before, before) == "almost free"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        (FLASH, "scores are not moved"),
        (FULL, "recomputation"),
        (SMALLER, "adding up gradients"),
        (tensor(8), "all-reduces in every layer"),
        (pipeline(8), "stages wait"),
        (OFFLOADED, "the link to the host"),
        (sharded("zero1"), "each GPU steps fewer weights"),
    ],
)
def test_a_phrase_says_why(changes: Changes, want: str) -> None:
    """The part that changes most is named, with its share of the step."""
    job = textbook_13b({"gpu.count": 8})
    phrase = why(time_of(job, a_card()), time_of(with_changes(job, changes.items()), a_card()))
    assert want in phrase
    assert "%" in phrase


def test_more_gpus_do_the_same_batch_in_less_time() -> None:
    """A step is compared by its sequences: twice the GPUs for the same global batch are nearly twice as fast, and for twice the batch as
    well."""
    one, card = textbook_13b({"gpu.count": 8, "batch.gradient_accumulation_steps": 4}), a_card()
    same = with_changes(one, {"gpu.count": 16, "batch.gradient_accumulation_steps": 2}.items())
    twice = with_changes(one, {"gpu.count": 16}.items())
    assert relative(time_of(one, card), time_of(same, card)) == pytest.approx(0.5, abs=0.06)
    assert relative(time_of(one, card), time_of(twice, card)) == pytest.approx(0.5, abs=0.06)


def test_the_total_is_the_sum_of_the_parts() -> None:
    """Nothing is counted twice or left out."""
    seconds = time_of(textbook_13b({"gpu.count": 8, **FULL, **tensor(2)}), a_card())
    assert seconds.total == pytest.approx(sum(getattr(seconds, name) for name in PARTS), rel=1e-12)


@pytest.mark.parametrize("block", FAMILY_SIZES)
def test_every_family_has_a_cost(block: str) -> None:
    """Each part of each family's step is a finite number, none below 0."""
    plan = a_plan(model=a_transformer(block))
    seconds = step_time(plan, sizes_of(plan), card_of())
    assert seconds.total > 0
    assert min(getattr(seconds, name) for name in PARTS) >= 0


WORDS: list[tuple[str, Plan]] = [
    ("llama", a_plan(model=a_transformer(layers=32, hidden_size=4096, heads=32, kv_heads=8, ffn_hidden_size=14336, vocab_size=128256))),
    ("experts", a_plan(model=a_routed_transformer(layers=16, hidden_size=2048, heads=16, vocab_size=100000))),
    ("zero3", a_plan({"gpu.count": 8, "parallelism.sharding": "zero3", **FULL, "offload.optimizer": "cpu"})),
    ("hybrid", a_plan({"gpu.count": 16, "parallelism.sharding": "hsdp", "optimizer.name": "adamw-8bit"})),
    ("zero2", a_plan({"gpu.count": 8, "parallelism.sharding": "zero2", "framework.name": "deepspeed", "offload.optimizer": "cpu"})),
    ("windows", a_plan(FLASH, model=a_transformer("gemma3"))),
    ("adapters", a_plan({"parallelism.sharding": "fsdp", "gpu.count": 2}, lora=Lora(method="lora", rank=8))),
]
PLANS = 50_000


def an_array(entries: int) -> Sizes:
    """Plans whose every number varies, drawn at random."""
    draw = np.random.default_rng(7)
    choices: dict[str, list[int]] = {
        "micro_batch": [1, 2, 4, 8],
        "sequence": [512, 2048, 8192],
        "accumulation": [1, 2, 8],
        "data": [1, 2, 8, 64],
        "shard": [1, 2, 8, 64],
        "tensor": [1, 2, 8, 16],
        "pipeline": [1, 2, 4],
        "virtual_pipeline": [1, 2],
        "context": [1, 2, 4],
        "expert": [1, 2, 4],
        "world": [8, 64, 512],
        "node_gpus": [4, 8],
        "checkpoint_layers": [0, 1, 2, 9],
    }
    return Sizes(**{name: cast("float", draw.choice(np.array(values), entries)) for name, values in choices.items()})


def entry(sizes: Sizes, index: int) -> Sizes:
    """One plan of an array."""
    listed = {field.name: getattr(sizes, field.name) for field in fields(Sizes)}
    return Sizes(**{name: int(value[index]) if hasattr(value, "shape") else value for name, value in listed.items()})


@pytest.mark.parametrize(("name", "plan"), WORDS, ids=[name for name, _ in WORDS])
def test_an_array_of_plans_is_its_plans_one_by_one(name: str, plan: Plan) -> None:
    """Every part of every plan is what a call of its own says, to 1e-9."""
    sizes = an_array(64)
    together = step_time(plan, sizes, card_of())
    for index in range(64):
        alone, one = step_time(plan, entry(sizes, index), card_of()), together.at(index)
        assert [getattr(one, part) for part in PARTS] == pytest.approx([getattr(alone, part) for part in PARTS], rel=1e-9, abs=1e-15), name
        assert one.samples == alone.samples


def test_fifty_thousand_plans_take_ten_milliseconds() -> None:
    """The best of some runs, in CPU time, with all numbers varying that a search varies: not the length of the sequences, nor the nodes."""
    plan, sizes = WORDS[0][1], replace(an_array(PLANS), sequence=2048, node_gpus=8)
    seconds = []
    for _ in range(15):
        start = process_time()
        answer = step_time(plan, sizes, card_of())  # kept to the next one, so that the process keeps its memory
        assert answer.total.shape == (PLANS,)  # type: ignore[attr-defined]  # an array of the plans
        seconds.append(process_time() - start)
    assert min(seconds) < 0.010


def test_whole_numbers_do_not_overflow() -> None:
    """A step of 16 million tokens of a model of 400 billion weights has more FLOP than 63 bits hold."""
    model = a_transformer(layers=126, hidden_size=16384, heads=128, kv_heads=8, ffn_hidden_size=53248, vocab_size=128256)
    plan = plan_of(a_job(model=model))
    sizes = replace(sizes_of(plan), micro_batch=cast("float", np.array([2048])), sequence=8192)
    (total,) = cast("list[float]", step_time(plan, sizes, card_of()).total)
    want = 6 * 405e9 * 2048 * 8192 / card_of().flops
    assert want < total < 2 * want
