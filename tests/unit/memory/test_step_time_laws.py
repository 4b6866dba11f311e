"""Laws of the cost of a plan, for drawn plans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.builders import a_plan, a_routed_transformer, a_transformer

from peakgate.memory.catalog.gpus import GPUS
from peakgate.memory.change import Value
from peakgate.memory.job import Transformer
from peakgate.memory.plan import Plan
from peakgate.memory.step_time import Card, Sizes, StepTime, card_of, relative, step_time

LAYERS = 24
GPT = a_transformer("gpt", layers=LAYERS, hidden_size=2048, heads=16, ffn_hidden_size=8192, vocab_size=50257)
LLAMA = a_transformer(layers=LAYERS, hidden_size=2048, heads=16, kv_heads=4, ffn_hidden_size=5632, vocab_size=32000)
ROUTED = a_routed_transformer(layers=8, hidden_size=1024, heads=8, vocab_size=32000)
KINDS = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")
POWERS = (1, 2, 4, 8, 16)


def a_plan_of(model: Transformer, **words: Value) -> Plan:
    """A plan on 16 GPUs with some words; `kind` of data parallelism."""
    kind = words.pop("kind", "ddp")
    return a_plan({"gpu.count": 16, "parallelism.sharding": kind, **{name.replace("__", "."): v for name, v in words.items()}}, model=model)


SIZES = st.builds(
    Sizes,
    micro_batch=st.integers(1, 16),
    sequence=st.sampled_from((128, 1024, 2048, 8192)),
    accumulation=st.integers(1, 16),
    data=st.sampled_from(POWERS),
    shard=st.sampled_from(POWERS),
    tensor=st.sampled_from(POWERS),
    pipeline=st.sampled_from((1, 2, 4)),
    virtual_pipeline=st.integers(1, 3),
    context=st.sampled_from((1, 2, 4)),
    expert=st.sampled_from((1, 2, 4)),
    world=st.sampled_from((8, 16, 256)),
    node_gpus=st.sampled_from((1, 4, 8)),
    checkpoint_layers=st.integers(0, LAYERS),
)
CARDS = st.sampled_from([card_of(spec) for spec in GPUS.values()])


def timed(plan: Plan, sizes: Sizes, card: Card) -> StepTime:
    """The step."""
    return step_time(plan, sizes, card)


@given(sizes=SIZES, card=CARDS)
def test_more_checkpointed_layers_are_never_faster(sizes: Sizes, card: Card) -> None:
    """Each layer adds its own forward pass, and all of them as much as none stated."""
    plan = a_plan_of(GPT, checkpointing__mode="full")
    costs = [timed(plan, replace(sizes, checkpoint_layers=n), card).total for n in range(1, LAYERS + 1)]
    assert costs == sorted(costs)
    assert costs[0] >= timed(a_plan_of(GPT), sizes, card).total * (1 - 1e-9)
    assert costs[-1] == pytest.approx(timed(plan, replace(sizes, checkpoint_layers=0), card).total, rel=1e-9)


@given(sizes=SIZES, card=CARDS, kind=st.sampled_from(KINDS), offloads=st.booleans(), slower=st.floats(1, 100))
def test_a_slower_card_or_link_is_never_faster(sizes: Sizes, card: Card, kind: str, offloads: bool, slower: float) -> None:
    """Whichever of its rates falls."""
    plan = a_plan_of(ROUTED, kind=kind, offload__optimizer="cpu" if offloads else "none", checkpointing__mode="full")
    before = timed(plan, sizes, card).total
    for rate in ("flops", "memory_bandwidth", "inside_node", "between_nodes", "to_host"):
        # Backward passes that take longer hide more, never more than they take longer.
        after = timed(plan, sizes, replace(card, **{rate: getattr(card, rate) / slower})).total
        assert after >= before * (1 - 1e-9), rate


@given(sizes=SIZES, card=CARDS, block=st.sampled_from(("gpt", "llama", "gemma3", "bert")), batch=st.sampled_from(("float32", "bfloat16")))
def test_flash_attention_is_never_slower_than_an_unfused_core(sizes: Sizes, card: Card, block: str, batch: str) -> None:
    """On no card, at no length, causal or not."""
    model = a_transformer(block, layers=4, hidden_size=1024, heads=8, head_dim=128)
    words: dict[str, Value] = {"precision.compute": batch}
    eager, flash = (a_plan({**words, "attention.implementation": name}, model=model) for name in ("eager", "flash"))
    assert timed(flash, sizes, card).total <= timed(eager, sizes, card).total * (1 + 1e-9)


@given(sizes=SIZES, card=CARDS, factor=st.sampled_from((2, 4)))
def test_a_smaller_micro_batch_is_never_faster(sizes: Sizes, card: Card, factor: int) -> None:
    """The same sequences in smaller pieces, without a pipeline, whose bubble shrinks with them."""
    whole = replace(sizes, micro_batch=sizes.micro_batch * factor, pipeline=1)
    pieces = replace(whole, micro_batch=sizes.micro_batch, accumulation=sizes.accumulation * factor)
    for kind in KINDS:
        plan = a_plan_of(LLAMA, kind=kind)
        assert relative(timed(plan, whole, card), timed(plan, pieces, card)) >= 1 - 1e-9, kind


@given(sizes=SIZES, card=CARDS)
def test_more_micro_batches_shrink_the_bubble(sizes: Sizes, card: Card) -> None:
    """A sequence of a longer step never takes longer, and more chunks or a zero-bubble schedule leave less of the bubble."""
    plan, zero_bubble = (
        a_plan_of(GPT),
        a_plan_of(GPT, parallelism__pipeline_schedule="zero-bubble", framework__name="torch", parallelism__pipeline=2),
    )
    one, more = timed(plan, sizes, card), timed(plan, replace(sizes, accumulation=2 * sizes.accumulation), card)
    assert more.pipeline_bubble / more.samples <= one.pipeline_bubble / one.samples * (1 + 1e-9)
    chunked = timed(plan, replace(sizes, virtual_pipeline=sizes.virtual_pipeline + 1), card)
    assert chunked.pipeline_bubble <= one.pipeline_bubble
    assert timed(zero_bubble, sizes, card).pipeline_bubble == pytest.approx(one.pipeline_bubble / 3, rel=0.2)


@given(sizes=SIZES, card=CARDS)
def test_for_loops_are_never_faster_than_foreach_and_that_never_than_fused(sizes: Sizes, card: Card) -> None:
    """Of the same optimizer."""
    loop, foreach, fused = (
        timed(a_plan_of(LLAMA, optimizer__implementation=name), sizes, card).optimizer for name in ("for-loop", "foreach", "fused")
    )
    assert loop > foreach > fused


@given(sizes=SIZES, card=CARDS)
def test_no_part_is_below_nothing(sizes: Sizes, card: Card) -> None:
    """Of any kind of data parallelism."""
    for kind in KINDS:
        seconds = timed(a_plan_of(ROUTED, kind=kind, offload__activations="cpu", parallelism__context_type="ring"), sizes, card)
        assert (
            min(getattr(seconds, name) for name in ("products", "attention", "context", "offload", "data_parallel", "gathered_weights"))
            >= 0
        )
