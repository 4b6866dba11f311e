"""The lesson's five exercises: its numbers (tests/golden/seed_numbers.jsonl), and its formulas beside the model's figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.memory.builders import FAMILY_SIZES, GB, a_job, a_routed_transformer, a_transformer, category_bytes

from peakgate.memory.change import Value, with_changes
from peakgate.memory.exercises import (
    MODES,
    activation_bytes,
    activation_peak,
    best_k,
    cheapest_fix,
    gpus_for_states,
    largest_micro_batch,
    lesson_job,
    model_params,
    model_state_bytes,
    params_per_layer,
    saved_tensors,
    step_timeline,
)
from peakgate.memory.exercises.fixes import fixes
from peakgate.memory.job import Job
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError

GOLDEN = Path(__file__).parents[2] / "golden" / "seed_numbers.jsonl"
ROWS: dict[str, dict[str, Any]] = {row["id"]: row for row in map(json.loads, GOLDEN.read_text().splitlines())}
SBH = 2048 * 8 * 2048
"""Of the 1.3B example."""

EIGHT_GPUS: tuple[tuple[str, Value], ...] = (("parallelism.world_size", 8), ("parallelism.sharding", "ddp"))


STATES = ("parameters", "gradients", "master_weights", "optimizer_states")


def category_total(job: Job, categories: tuple[str, ...]) -> int:
    """Bytes of some categories at the peak."""
    return sum(category_bytes(predict(job), category) for category in categories)


def expected(name: str, key: str) -> Any:
    """What a row of the seeds says."""
    return ROWS[name]["expect"][key]


# ---- 1. parameters
@given(h=st.integers(1, 64).map(lambda n: 64 * n))
@settings(max_examples=20, deadline=None)
def test_a_gpt_layer_is_the_lessons_formula(h: int) -> None:
    """12h² + 13h of the lesson, whatever the width."""
    assert params_per_layer(h) == 12 * h * h + 13 * h


def test_a_gpt_layer_of_1024() -> None:
    """Section 8, question 1."""
    assert params_per_layer(1024, 4, 1, "gpt") == expected("s1-gpt-layer-params", "params")


@given(h=st.integers(1, 16).map(lambda n: 96 * n), groups=st.sampled_from((1, 2, 4, 8)), ratio=st.sampled_from((2, 8 / 3, 3.5, 4)))
@settings(max_examples=20, deadline=None)
def test_a_llama_layer_is_the_lessons_count(h: int, groups: int, ratio: float) -> None:
    """Query and output h², key and value h²/g, three matrices h × f, two norms h."""
    want = 2 * h * h + 2 * h * h // groups + 3 * h * round(ratio * h) + 2 * h
    assert params_per_layer(h, ratio, 1 / groups, "llama") == want


def test_model_totals() -> None:
    """GPT-2, the 1.3B model, Llama 2 7B and 70B to the last parameter."""
    assert model_params(12, 768, 50257, positions=1024) == expected("s1-gpt2-small", "params") == 124_439_808
    assert model_params(24, 2048, 50257) == expected("s1-gpt-1p3b-params", "params") == 1_311_528_960
    assert model_params(32, 4096, 32000, 11008 / 4096, 1, "llama") == expected("s1-llama2-7b-params", "params") == 6_738_415_616
    assert model_params(80, 8192, 32000, 28672 / 8192, 1 / 8, "llama") == expected("s1-llama2-70b", "params") == 68_976_648_192


# ---- 2. model states
@pytest.mark.parametrize("name", ["s1-7b-states", "s1-13b-states"])
def test_sixteen_bytes_a_parameter(name: str) -> None:
    """Mixed-precision Adam: 112 GB for 7B, 208 GB for 13B."""
    assert model_state_bytes(int(ROWS[name]["inputs"]["params"])) == expected(name, "bytes")


@pytest.mark.parametrize("kept", [0, 2, 4, 6, 8, 12])
def test_model_states_are_the_lessons_formula(kept: int) -> None:
    """(2 + 2 + K)Ψ bytes."""
    assert model_state_bytes(1_000_003, kept) == (2 + 2 + kept) * 1_000_003


def test_a_k_that_no_optimizer_keeps_is_refused() -> None:
    """The error says which there are."""
    with pytest.raises(ValueError, match="K=11: an optimizer keeps 0, 2, 4, 6, 8, 12"):
        model_state_bytes(1, 11)


@pytest.mark.parametrize(("psi", "want"), [(1_311_528_960, 1), (7 * GB, 2), (13 * GB, 3), (70 * GB, 14), (175 * GB, 35)])
def test_gpus_for_states(psi: int, want: int) -> None:
    """⌈16Ψ / 80 GB⌉ GPUs; 14 of them for 70B (section 8, question 2)."""
    assert gpus_for_states(psi) == want == math.ceil(16 * psi / (80 * GB))
    assert gpus_for_states(70 * GB) == expected("s1-70b-gpus", "gpus")


# ---- 3. activations
FORMULAS = {
    "baseline": lambda s, b, h, a: 34 * s * b * h + 5 * a * s * s * b,
    "flash": lambda s, b, h, a: 34 * s * b * h,
    "selective": lambda s, b, h, a: 34 * s * b * h,
    "full": lambda s, b, h, a: 2 * s * b * h,
    "flash-full": lambda s, b, h, a: 2 * s * b * h,
}
"""The lesson's table, section 3, "What changes the count"."""


@given(
    mode=st.sampled_from(sorted(FORMULAS)),
    s=st.integers(1, 64).map(lambda n: 64 * n),
    b=st.integers(1, 16),
    a=st.sampled_from((1, 2, 8, 16)),
    width=st.sampled_from((16, 64, 128)),
)
@settings(max_examples=40, deadline=None)
def test_activations_are_the_lessons_formulas(mode: str, s: int, b: int, a: int, width: int) -> None:
    """34sbh + 5as²b, 34sbh twice, 2sbh; and the tensors that are listed sum to it."""
    h = a * width
    assert activation_bytes(s, b, h, a, mode) == FORMULAS[mode](s, b, h, a)
    assert sum(each.bytes for each in saved_tensors(lesson_job(s=s, b=b, h=h, a=a, mode=mode))) == FORMULAS[mode](s, b, h, a)


def test_the_theorem_of_the_worked_example() -> None:
    """3.83 GB a layer."""
    assert activation_bytes(2048, 8, 2048, 16) == expected("s1-act-theorem", "bytes")


def test_the_list_is_the_lessons_proof() -> None:
    """Tensor by tensor, in units of sbh (the core, as²b, is 16 of them here)."""
    rows = [(each.operation, each.tensor, each.bytes / SBH) for each in saved_tensors(lesson_job())]
    assert rows == [
        ("norm.layer", "input", 2),
        ("linear.qkv", "input", 2),
        ("matmul", "q", 2),
        ("matmul", "k", 2),
        ("softmax", "output", 2 * 16),
        ("dropout", "mask", 16),
        ("matmul", "first factor", 2 * 16),
        ("matmul", "v", 2),
        ("linear.o", "input", 2),
        ("dropout", "mask", 1),
        ("norm.layer", "input", 2),
        ("linear.up", "input", 2),
        ("gelu", "input", 8),
        ("linear.down", "input", 8),
        ("dropout", "mask", 1),
    ]


def test_without_dropout_a_softmax_output_is_listed_once() -> None:
    """32sbh + 2as²b (section 8, question 4): the product with V keeps the tensor that softmax keeps."""
    job = with_changes(lesson_job(), (("dropout.attention", 0.0), ("dropout.hidden", 0.0)))
    listed = saved_tensors(job)
    assert sum(each.bytes for each in listed) == (32 + 2 * 16) * SBH
    assert [each.tensor for each in listed if each.operation == "matmul"] == ["q", "k", "v"]


def test_a_checkpoint_lists_its_inputs() -> None:
    """Selective recomputation holds Q, K and V, full checkpointing the layer's input."""
    selective, full = ([e.tensor for e in saved_tensors(lesson_job(mode=m)) if e.operation == "checkpoint"] for m in ("selective", "full"))
    assert (selective, full) == (["q", "k", "v"], ["input"])


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("kv_heads", [16, 4])
def test_a_llama_layer_needs_its_own_count(mode: str, kv_heads: int) -> None:
    """The list sums to what the walk keeps, with fewer key/value heads too."""
    job = lesson_job(style="llama", kv_heads=kv_heads, mode=mode)
    listed = sum(each.bytes for each in saved_tensors(job))
    more, fewer = (category_total(with_changes(job, (("model.transformer.layers", n),)), ("activations",)) for n in (3, 2))
    assert listed == more - fewer
    if mode in ("baseline", "flash"):
        assert listed == predict(job).saved_activation_bytes_per_layer


def test_a_llama_layer_by_hand() -> None:
    """Norm inputs 4, inputs of Q, K, V and of the MLP 4, Q, K, V 6, the output 2 (in sbh); gate, its SiLU, up and their product 8sbf."""
    want = 16 * 512 * 2 * 768 + 8 * 512 * 2 * 2048
    assert activation_bytes(512, 2, 768, 12, "flash", "llama") == want != 34 * 512 * 2 * 768


ONE_STACK = sorted(block for block in FAMILY_SIZES if "encoder_layers" not in FAMILY_SIZES[block])


@pytest.mark.parametrize("block", ONE_STACK)
@pytest.mark.parametrize("attention", ["eager", "flash"])
def test_every_decoder_can_be_listed(block: str, attention: str) -> None:
    """The list sums to what the walk counts for a layer: no tensor is missing, and none is there twice."""
    model = a_routed_transformer() if block == "deepseek_v3" else a_transformer(block)
    job = a_job({"framework.name": "textbook", "attention.implementation": attention}, model=model)
    dense = with_changes(job, (("model.transformer.dense_layers", 0),))
    assert sum(each.bytes for each in saved_tensors(dense)) == predict(dense).saved_activation_bytes_per_layer


def test_only_the_lessons_terms_are_listed() -> None:
    """A real framework's first layer would list the tables of all layers."""
    with pytest.raises(ValueError, match="takes only textbook"):
        saved_tensors(a_job())


def test_unknown_words_are_refused() -> None:
    """The error says what there is."""
    with pytest.raises(ValueError, match="'half' is not one of baseline, flash, selective, full"):
        activation_bytes(8, 1, 64, 1, "half")
    with pytest.raises(ValueError, match="'bert' is not one of gpt, llama"):
        lesson_job(style="bert")


# ---- 4. one step in time
def test_every_k_layers() -> None:
    """M(6) = 212 sbh and M(1) = 82 sbh of 24 layers; 194 and 148 of 80."""
    flash, long = lesson_job(mode="flash"), lesson_job(mode="flash", L=80)
    assert [activation_peak(flash, k) / SBH for k in (6, 1)] == [expected("s1-every-k", name) for name in ("k6", "k1")]
    assert [activation_peak(long, k) / SBH for k in (1, 2)] == [expected("s1-every-k-80", name) for name in ("k1", "k2")]


@pytest.mark.parametrize("layers", [24, 48, 80])
def test_best_k_is_near_the_lessons_root(layers: int) -> None:
    """The best whole k is one of the two beside k* = √(Lc/A), and no peak is below 2√(LcA)."""
    checkpoint, layer = (activation_bytes(s=2048, b=8, h=2048, a=16, mode=mode) for mode in ("full", "flash"))
    job, root = lesson_job(mode="flash", L=layers), math.sqrt(layers * checkpoint / layer)
    best = best_k(job)
    assert best in (math.floor(root), math.ceil(root))
    assert activation_peak(job, best) >= 2 * math.sqrt(layers * checkpoint * layer)
    if layers == 80:
        assert best == expected("s1-every-k-80", "best_k")


def test_a_step_without_checkpoints_rises_once_and_falls_once() -> None:
    """Every layer adds 34sbh forward; the peak is where the backward pass begins; the states are what is left."""
    moments = [moment.bytes for moment in step_timeline(lesson_job(mode="flash"))]
    top = moments.index(max(moments))
    assert moments[: top + 1] == sorted(moments[: top + 1])
    assert moments[top:] == sorted(moments[top:], reverse=True)
    states, logits = (category_total(lesson_job(), names) for names in (STATES, ("logits",)))
    assert (moments[0], moments[top], moments[-1]) == (states, states + 24 * 34 * SBH + logits, states)


@pytest.mark.parametrize("k", [1, 2, 6, 24])
def test_a_checkpoint_every_k_layers_is_a_sawtooth(k: int) -> None:
    """L/k teeth, the first of them the highest: all L/k checkpoints and k rebuilt layers; each later one has a checkpoint less below it."""
    moments = step_timeline(lesson_job(mode="flash"), k)
    backward = [moment.bytes for moment in moments if moment.phase == "backward"]
    teeth = [here for before, here, after in zip(backward, backward[1:], backward[2:], strict=False) if before < here > after]
    states, logits = (category_total(lesson_job(), names) for names in (STATES, ("logits",)))
    want = [states + logits + (24 // k - i) * 2 * SBH + k * 34 * SBH for i in range(24 // k)]
    assert teeth == want
    assert max(moment.bytes for moment in moments) == states + logits + activation_peak(lesson_job(mode="flash"), k)


# ---- 5. what makes it fit
def test_the_worked_example_is_fixed_by_flash_attention() -> None:
    """116 GB do not fit on 80 GB; FlashAttention comes first and needs 51.7 GB."""
    fix = cheapest_fix(lesson_job())
    assert fix is not None
    assert (fix.title, fix.changes) == ("FlashAttention", (("attention.implementation", "flash"),))
    assert fix.needed_bytes == pytest.approx(expected("s1-worked-flash", "total"), rel=ROWS["s1-worked-flash"]["rel_tol"])


def test_eight_gpus_of_40_gb() -> None:
    """Section 4, step 9: with FlashAttention 51.7 GB; ZeRO comes before a smaller micro-batch, and ZeRO-2 needs 35.6 GB."""
    job = with_changes(lesson_job(mode="flash"), EIGHT_GPUS)
    listed = {title: predict(with_changes(job, changes)).required_bytes for title, changes in fixes(job)}
    assert listed["ZeRO-2"] == pytest.approx(expected("s1-worked-zero2", "total"), rel=0.002)
    fix, with_room = cheapest_fix(job, 40 * GB), cheapest_fix(job, 40 * GB, keep_free=0.10)
    assert fix is not None
    assert with_room is not None
    assert (fix.title, with_room.title) == ("ZeRO-1", "ZeRO-2")


@pytest.mark.parametrize(
    ("job", "gigabytes", "want"),
    [
        (lesson_job(), 120, "nothing: it fits"),
        (lesson_job(mode="flash"), 40, "micro-batch 4 with 2 accumulation steps"),
        (lesson_job(b=1), 30, "FlashAttention"),
        (lesson_job(b=1, mode="flash"), 23, "full checkpointing"),
        (with_changes(lesson_job(b=1, mode="flash"), EIGHT_GPUS), 7, "ZeRO-3"),
        (lesson_job(b=1, mode="flash"), 15, "tensor + sequence parallelism over 2 GPUs"),
        (lesson_job(b=1, mode="flash", a=13, h=13 * 128), 10, "pipeline parallelism over 2 GPUs"),
        (lesson_job(b=1, mode="flash", a=13, h=13 * 128, L=1), 2, "offload of the optimizer"),
        (lesson_job(), 2, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_fix_that_fits(job: Job, gigabytes: int, want: str | None) -> None:
    """Each step of the lesson's order is reached when those before it do not fit; heads that do not divide pass the step by."""
    fix = cheapest_fix(job, gigabytes * GB)
    assert (fix and fix.title) == want


def test_the_order_is_the_lessons() -> None:
    """FlashAttention, selective, ZeRO-1, ZeRO-2, micro-batch, full, ZeRO-3, tensor, pipeline, offload."""
    titles = [title.split()[0] for title, _ in fixes(lesson_job(b=2))]
    want = ["nothing:", "FlashAttention", "selective", "ZeRO-1", "ZeRO-2", "micro-batch", "full", "ZeRO-3", "tensor", "pipeline", "offload"]
    assert list(dict.fromkeys(titles)) == want


def test_a_job_that_is_split_stays_so() -> None:
    """Only the degrees that a job does not use are offered, and each copy of the model takes that many GPUs more."""
    job = with_changes(lesson_job(), (("parallelism.tensor", 2), ("parallelism.world_size", 4)))
    listed = {title: dict(changes) for title, changes in fixes(job)}
    assert not [title for title in listed if title.startswith("tensor")]
    assert listed["pipeline parallelism over 2 GPUs"]["parallelism.world_size"] == 8


def test_what_is_not_counted_whole_is_no_fix() -> None:
    """A model that nobody knows has figures of a stand-in, and those do not make a fix."""
    assert cheapest_fix(with_changes(lesson_job(), (("model.transformer.block", "unheard-of"),)), 10**15) is None


def test_a_bad_job_is_an_error_and_not_one_that_never_fits() -> None:
    """A field that is wrong is named."""
    with pytest.raises(JobError, match="sequence_length"):
        cheapest_fix(lesson_job(s=-1))


def test_largest_micro_batches() -> None:
    """Section 4, step 8: 12 with FlashAttention and 62 with full checkpointing on top, 15 % of 80 GB kept free."""
    assert largest_micro_batch(lesson_job(mode="flash")) == expected("s1-worked-max-batch", "flash")
    assert largest_micro_batch(lesson_job(mode="flash-full")) == expected("s1-worked-max-batch", "flash_and_full_checkpoint")
    assert largest_micro_batch(lesson_job(L=512)) == 0
