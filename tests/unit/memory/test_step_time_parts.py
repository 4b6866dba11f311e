"""Each part of a step against the formula it comes from, on cards on which nothing else counts."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer, plan_of
from tests.unit.memory.test_operations import a_network

from peakgate.memory.change import Value
from peakgate.memory.job import Lora, Transformer
from peakgate.memory.plan import Plan
from peakgate.memory.step_time import Card, Sizes, StepTime, sizes_of, step_time

FLOPS, LINK, NETWORK, HOST = 1e14, 1e11, 1e10, 1e9
COMPUTE = Card(flops=FLOPS, memory_bandwidth=inf, inside_node=inf, between_nodes=inf, to_host=inf)
"""Only FLOP take time."""
WIRES = Card(flops=inf, memory_bandwidth=inf, inside_node=LINK, between_nodes=NETWORK, to_host=HOST)
"""Only links do: nothing hides behind anything."""
MEMORY = replace(COMPUTE, flops=inf, memory_bandwidth=1e12)

LAYERS, H, F, V, S, B = 4, 512, 2048, 4000, 1024, 2
LLAMA = a_transformer(layers=LAYERS, hidden_size=H, heads=8, kv_heads=8, ffn_hidden_size=F, vocab_size=V)
LAYER_WEIGHTS, HEAD_WEIGHTS = 4 * H * H + 3 * H * F, H * V
WEIGHTS = LAYERS * LAYER_WEIGHTS + HEAD_WEIGHTS
PSI = WEIGHTS + H * V + (2 * LAYERS + 1) * H
TOKENS = B * S


def a_plan_of(changes: dict[str, Value] | None = None, model: Transformer = LLAMA, lora: Lora | None = None) -> Plan:
    """A plan of the model on fused attention: 2 sequences of 1,024 tokens in bf16."""
    common: dict[str, Value] = {"batch.micro_batch_size": B, "batch.sequence_length": S, "attention.implementation": "flash"}
    return a_plan({**common, **(changes or {})}, model=model, lora=lora)


def timed(changes: dict[str, Value] | None = None, card: Card = COMPUTE, **sizes: float) -> StepTime:
    """The step of a changed plan."""
    plan = a_plan_of(changes)
    return step_time(plan, replace(sizes_of(plan), **sizes), card)


def test_products_have_six_flop_a_weight_and_token() -> None:
    """6Ψ of the matrices that rows are multiplied by; the embedding is looked up."""
    assert timed().products == pytest.approx(6 * WEIGHTS * TOKENS / FLOPS)


def test_frozen_weights_have_four() -> None:
    """Under LoRA the base needs no gradient of its own: 4Ψ, and 6 for the adapters' few weights."""
    plan = a_plan_of(lora=Lora(method="lora", rank=8, targets=("q_proj", "v_proj")))
    adapters = LAYERS * 2 * 2 * 8 * H
    assert step_time(plan, sizes_of(plan), COMPUTE).products == pytest.approx((4 * WEIGHTS + 6 * adapters) * TOKENS / FLOPS)


def test_only_the_experts_that_a_token_visits_count() -> None:
    """Two of eight; a rank with half of them has the tokens of two ranks for half as many each."""
    model = a_transformer("mixtral", layers=LAYERS, hidden_size=H, heads=8, kv_heads=8, ffn_hidden_size=F, vocab_size=V, experts=8)
    plan = a_plan_of(model=model)
    active = LAYERS * (4 * H * H + 8 * H + 2 * 3 * H * F) + HEAD_WEIGHTS
    for experts in (1, 2):
        seconds = step_time(plan, replace(sizes_of(plan), expert=experts), COMPUTE)
        assert seconds.products == pytest.approx(6 * active * TOKENS / FLOPS)


def test_an_unfused_core_has_twelve_flop_a_layer_key_and_channel() -> None:
    """12·L·h·s a token, as the papers count it; a fused causal one half of them, and half of one more product."""
    assert timed({"attention.implementation": "eager"}).attention == pytest.approx(12 * LAYERS * H * S * TOKENS / FLOPS)
    assert timed().attention == pytest.approx(7 * LAYERS * H * S * TOKENS / FLOPS)


def test_an_unfused_core_moves_the_scores() -> None:
    """22 bytes each, forward and backward."""
    assert timed({"attention.implementation": "eager"}, MEMORY).attention == pytest.approx(22 * 8 * LAYERS * S * TOKENS / 1e12)
    assert timed(card=MEMORY).attention == 0


def test_full_checkpointing_runs_the_forward_pass_again() -> None:
    """2Ψ more of the layers, not of the head, and as much less as layers are left out."""
    forward = (2 * LAYERS * LAYER_WEIGHTS + 2 * LAYERS * H * S) * TOKENS / FLOPS
    assert timed({"checkpointing.mode": "full"}).recompute == pytest.approx(forward)
    assert timed({"checkpointing.mode": "full", "checkpointing.layers": 1}).recompute == pytest.approx(forward / LAYERS)
    assert timed({"checkpointing.mode": "selective"}).recompute == pytest.approx(2 * LAYERS * H * S * TOKENS / FLOPS)


def test_a_named_module_is_recomputed_alone() -> None:
    """The feed-forward part of Hugging Face's layer, and every second product of torchtitan's."""
    mlp = timed({"checkpointing.mode": "selective", "checkpointing.modules": ("mlp",)})
    assert mlp.recompute == pytest.approx(2 * LAYERS * 3 * H * F * TOKENS / FLOPS)
    listed = timed({"checkpointing.mode": "selective", "framework.name": "torchtitan", "attention.implementation": "sdpa"})
    assert listed.recompute == pytest.approx(LAYERS * LAYER_WEIGHTS * TOKENS / FLOPS)


def test_tensor_parallelism_divides_the_products() -> None:
    """And the cores, over its ranks."""
    whole, split = timed(), timed(tensor=4)
    assert split.products == pytest.approx(whole.products / 4)
    assert split.attention == pytest.approx(whole.attention / 4)


@pytest.mark.parametrize(("changes", "want_forward_passes"), [({}, 2), ({"checkpointing.mode": "full"}, 3)])
def test_a_layer_has_four_all_reduces(changes: dict[str, Value], want_forward_passes: int) -> None:
    """Two forward, two backward, and two more where the layer runs again; a ring sends 2(t - 1) / t of b·s·h elements each."""
    want = want_forward_passes * 2 * LAYERS * TOKENS * H * 2 * 2 * 3 / 4
    assert timed(changes, WIRES, tensor=4).tensor_parallel == pytest.approx(want / LINK)


def test_a_group_wider_than_a_node_goes_over_the_network() -> None:
    """All adapters of its GPUs in a node carry it: 16 ranks, eight of a node with 10 GB/s each and 100 GB/s inside."""
    inside, across = timed(card=WIRES, tensor=8), timed(card=WIRES, tensor=16)
    assert inside.tensor_parallel * (15 / 16) / (7 / 8) * LINK / (8 * NETWORK) == pytest.approx(across.tensor_parallel)


@pytest.mark.parametrize(("kind", "want"), [("ddp", 2), ("zero1", 2), ("zero2", 2), ("zero3", 3), ("fsdp", 3)])
def test_volumes_are_those_of_the_zero_paper(kind: str, want: float) -> None:
    """2Ψ for plain data parallelism and stages 1 and 2, 3Ψ for stage 3 and FSDP, of which a ring leaves (d - 1) / d; all of it is waited
    for where nothing is computed."""
    changes: dict[str, Value] = {"gpu.count": 8, "parallelism.sharding": kind}
    seconds = timed(changes, WIRES)
    assert seconds.communication == pytest.approx(want * PSI * 2 * (7 / 8) / LINK)
    assert seconds.data_parallel + seconds.gathered_weights == pytest.approx(seconds.communication)


@pytest.mark.parametrize(("kind", "want"), [("ddp", 2), ("zero1", 2), ("zero2", 5), ("zero3", 12), ("fsdp", 9)])
def test_accumulation_repeats_what_is_sent_with_every_micro_batch(kind: str, want: float) -> None:
    """Four micro-batches: stage 2 scatters four times and gathers once; stage 3 does all of it four times; transformers' FSDP gathers four
    times and scatters once, under no_sync."""
    changes: dict[str, Value] = {"gpu.count": 8, "parallelism.sharding": kind, "batch.gradient_accumulation_steps": 4}
    assert timed(changes, WIRES).communication == pytest.approx(want * PSI * 2 * (7 / 8) / LINK)


def test_hybrid_sharding_reduces_between_nodes_what_a_node_has_scattered() -> None:
    """Three volumes inside a node; two of an eighth between two nodes, over each GPU's own adapter."""
    changes: dict[str, Value] = {"gpu.count": 16, "parallelism.sharding": "hsdp"}
    want = PSI * 2 * (3 * 7 / 8 / LINK + 2 / 8 * 1 / 2 / NETWORK)
    assert timed(changes, WIRES).communication == pytest.approx(want)


def test_communication_hides_behind_the_backward_pass() -> None:
    """All but the last layer's bucket, and what it takes of the multiprocessors."""
    card = replace(COMPUTE, inside_node=1e12)
    seconds = timed({"gpu.count": 8}, card)
    assert seconds.communication < seconds.products / 2
    shown = seconds.data_parallel / seconds.communication
    assert shown == pytest.approx(20 / 132 + 1 / LAYERS * (1 - 20 / 132))


def test_the_bubble_is_that_of_the_papers() -> None:
    """(p - 1) / (m·v) of the layers' time."""
    layers = 6 * LAYERS * LAYER_WEIGHTS * TOKENS / FLOPS / 4 + timed(pipeline=4).attention
    assert timed(pipeline=4, accumulation=8).pipeline_bubble == pytest.approx(3 * layers)
    assert timed(pipeline=4, accumulation=8, virtual_pipeline=3).pipeline_bubble == pytest.approx(layers)
    assert timed().pipeline_bubble == 0


def test_stages_pass_activations_on_and_gradients_back() -> None:
    """b·s·h elements each way, for each micro-batch and chunk, between nodes where the pipeline leaves one."""
    want = 2 * TOKENS * H * 2 * 8
    assert timed(card=WIRES, pipeline=4, accumulation=8).pipeline_transfers == pytest.approx(want / LINK)
    assert timed(card=WIRES, pipeline=16, accumulation=8, virtual_pipeline=2).pipeline_transfers == pytest.approx(2 * want / NETWORK)


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("all-gather", 3 * (4 - 1) * 2 * H),
        ("ring", 3 * (4 - 1) * 2 * H),
        ("ulysses", 2 * (3 / 4) * 4 * H),
    ],
)
def test_context_parallel_ranks_exchange_keys_and_values(kind: str, want: float) -> None:
    """Of the other ranks: once forward, and back with their gradients; Ulysses swaps q, k, v and the output, both ways."""
    seconds = timed({"parallelism.context_type": kind, "gpu.count": 4, "parallelism.context": 4}, WIRES)
    assert seconds.context == pytest.approx(want * LAYERS * TOKENS / 4 * 2 / LINK)


def test_a_ring_hides_behind_the_cores() -> None:
    """While a block's attention takes longer than its transfer."""
    changes: dict[str, Value] = {"parallelism.context_type": "ring", "gpu.count": 4, "parallelism.context": 4}
    assert timed(changes, replace(COMPUTE, inside_node=1e13)).context == 0


def test_tokens_travel_to_their_experts_and_back() -> None:
    """k·h elements, twice forward and twice backward, (e - 1) / e of them to others."""
    plan = a_plan_of(model=a_transformer("mixtral", layers=LAYERS, hidden_size=H, heads=8, ffn_hidden_size=F, vocab_size=V, experts=8))
    seconds = step_time(plan, replace(sizes_of(plan), expert=4), WIRES)
    assert seconds.expert == pytest.approx(4 * LAYERS * TOKENS * 2 * H * 2 * 3 / 4 / LINK)


def test_an_offloaded_optimizer_waits_for_the_link_and_the_cpus() -> None:
    """Gradients down, weights up, 2 bytes each, and 0.22 s for a billion weights, of all ranks of a node together."""
    changes: dict[str, Value] = {"gpu.count": 8, "parallelism.sharding": "zero3", "offload.optimizer": "cpu"}
    seconds = timed(changes, WIRES)
    assert seconds.offload == pytest.approx(4 * PSI / 8 / HOST + PSI * 0.22e-9, rel=1e-4)
    assert seconds.optimizer == 0


def test_offloaded_checkpoints_leave_and_come_back() -> None:
    """The input of each layer, both ways."""
    seconds = timed({"offload.activations": "cpu", "checkpointing.mode": "full"}, WIRES)
    assert seconds.offload == pytest.approx(2 * LAYERS * TOKENS * H * 2 / HOST)


def test_offloaded_weights_are_fetched_before_each_pass() -> None:
    """The rank's shard, twice a micro-batch."""
    changes: dict[str, Value] = {"gpu.count": 8, "parallelism.sharding": "zero3", "offload.parameters": "cpu"}
    assert timed(changes, WIRES, accumulation=3).offload == pytest.approx(3 * 2 * PSI * 2 / 8 / HOST)


@pytest.mark.parametrize(
    ("changes", "want_bytes"),
    [
        ({"optimizer.implementation": "fused"}, 14),
        ({"optimizer.implementation": "foreach"}, 40),
        ({"optimizer.implementation": "fused", "precision.recipe": "deepspeed-bf16"}, 28),
    ],
)
def test_an_optimizer_reads_and_writes_its_states(changes: dict[str, Value], want_bytes: int) -> None:
    """bf16: weight, gradient and two states read, all but the gradient written, 2 bytes each; with fp32 states and a master weight 26 and
    the new 16-bit weight's 2."""
    assert timed(changes, MEMORY).optimizer == pytest.approx(want_bytes * PSI / 1e12)


def test_eight_bit_states_move_less() -> None:
    """A quarter of the fp32 states' bytes, in one kernel a tensor."""
    words: dict[str, Value] = {"precision.recipe": "bf16-master", "optimizer.implementation": "fused"}
    assert (
        timed({**words, "optimizer.name": "adamw-8bit"}, MEMORY).optimizer < timed({**words, "optimizer.name": "adamw"}, MEMORY).optimizer
    )


def test_few_rows_are_bound_by_memory() -> None:
    """One token's products read every weight; a thousand's take as long as their FLOP."""
    card = replace(COMPUTE, memory_bandwidth=1e12)
    plan = a_plan_of()
    few, many = (step_time(plan, replace(sizes_of(plan), micro_batch=1, sequence=s), card).products for s in (1, 8192))
    assert few == pytest.approx(3 * 2 * WEIGHTS / 1e12, rel=0.01)
    assert many == pytest.approx(6 * WEIGHTS * 8192 / FLOPS, rel=0.01)


def test_fused_losses_and_norms_move_less() -> None:
    """Liger's kernels against transformers' own."""
    own, patched = timed(card=MEMORY), timed({"framework.fused_kernels": ("rms_norm", "swiglu")}, MEMORY)
    assert patched.elementwise < own.elementwise / 2
    fused = timed({"loss.implementation": "fused"}, MEMORY)
    assert (own.loss, fused.loss) == pytest.approx((38 * V * TOKENS / 1e12, 8 * V * TOKENS / 1e12))


def test_a_plain_network_has_the_flop_of_its_convolutions() -> None:
    """One row of a convolution for each place of its output: 6 x 6 of 8 x 8 with a 3 x 3 kernel."""
    plan = plan_of(
        a_network([{"op": "conv2d", "out": 4, "kernel": 3}, {"op": "flatten"}, {"op": "linear", "out": 10}], [3, 8, 8], batch=16)
    )
    want = 6 * 16 * (36 * 27 * 4 + 144 * 10)
    assert step_time(plan, sizes_of(plan), replace(COMPUTE, flops=FLOPS * 2)).products == pytest.approx(want / FLOPS)


def test_a_reference_model_costs_its_forward_pass() -> None:
    """A third of a step's products, beside the policy's own."""
    plan = plan_of(a_job({"method.name": "dpo", "batch.sequence_length": S, "attention.implementation": "flash"}, model=LLAMA))
    seconds = step_time(plan, sizes_of(plan), COMPUTE)
    assert seconds.companions == pytest.approx((seconds.products + seconds.attention * 2 / 7 * 3) / 3)


def test_sizes_default_to_one_rank() -> None:
    """A plan's numbers are what its job states."""
    assert sizes_of(a_plan_of()) == Sizes(micro_batch=B, sequence=S)
