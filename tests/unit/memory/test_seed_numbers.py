"""Every number and rule of the two seed texts, one test a row, named by its id (tests/golden/seed_numbers.jsonl)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.memory.seeds import (
    AS2B,
    SBH,
    A,
    B,
    H,
    S,
    activations,
    by_category,
    kept_by_block,
    kept_by_kernel,
    layer_bytes,
    plan_of,
    states,
    textbook_job,
    with_model,
)

from peakgate.calibration import Snapshot
from peakgate.memory.allocator import block_bytes
from peakgate.memory.dtypes import ITEMSIZE, stored_bytes
from peakgate.memory.job import (
    Batch,
    Checkpointing,
    Framework,
    Gpu,
    Job,
    Lora,
    Model,
    Offload,
    Optimizer,
    Parallelism,
    Precision,
    Transformer,
)
from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.lengths import sequence_of
from peakgate.memory.library import BLOCKS
from peakgate.memory.meter import Meter
from peakgate.memory.pipeline import stages
from peakgate.memory.predict import predict
from peakgate.memory.recipes import RECIPES
from peakgate.memory.states import Weight, states_of
from peakgate.memory.step import walk
from peakgate.memory.suggest import FULL_CHECKPOINTING_TIME, fixes
from peakgate.memory.tape import Node, Storage, Tape, Tensor

GIB, GB = 2**30, 1e9
ROWS = [json.loads(line) for line in (Path(__file__).parents[2] / "golden" / "seed_numbers.jsonl").read_text().splitlines()]

LATER = {
    "s1-oom-when": "`peakgate diagnose` comes with its own issue",
    "s2-oom-stage": "`peakgate diagnose` comes with its own issue",
}

Check = Callable[[dict[str, Any], dict[str, Any], float], None]
CHECKS: dict[str, Check] = {}


def row(*names: str) -> Callable[[Check], Check]:
    """Registers a check under the ids of its rows."""

    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return register


@pytest.mark.parametrize("seed", [r for r in ROWS if r["id"] not in LATER], ids=lambda r: r["id"])
def test_seed_row(seed: dict[str, Any]) -> None:
    """The memory model gives what the seed states, within the row's own tolerance."""
    CHECKS[seed["id"]](seed["inputs"], seed["expect"], seed["rel_tol"])


def test_no_row_is_forgotten() -> None:
    """Each row has a check, or a named issue that will bring it."""
    assert {r["id"] for r in ROWS} == set(CHECKS) | set(LATER)


def near(got: float, want: float, tolerance: float) -> None:
    """Asserts equality within a relative tolerance; 0 is exact."""
    assert got == pytest.approx(want, rel=max(tolerance, 1e-15), abs=0)


def bare(parameters: float, recipe: str = "deepspeed-bf16", **changes: Any) -> Job:
    """A job that is nothing but a parameter count."""
    return Job(model=Model(parameters=int(parameters)), precision=Precision(recipe=recipe, **changes), optimizer=Optimizer(name="adamw"))


# ---- model states
@row("s1-linear-states", "s1-double-tokens")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """16 bytes an entry of W; the tokens only double what is saved."""
    weight = Weight(name="linear.w", elements=1024 * 1024, trainable=True, count=1)
    assert states_of(plan_of(textbook_job()), [weight]).resident == 16777216
    if "tokens" in inputs:
        near(kept_by_kernel("linear", {"x": (inputs["tokens"], inputs["d_in"], 2)}, 1024), expect["bytes"], tolerance)


@row("s1-7b-states", "s1-13b-states", "s1-megatron-18", "s1-autocast-16")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Bytes of states by recipe."""
    recipe = {18: "megatron-bf16"}.get(expect["bytes"], "deepspeed-bf16")
    near(predict(bare(inputs["params"], recipe)).allocated_bytes, expect["bytes"], tolerance)
    near(predict(bare(1, "amp-bf16")).allocated_bytes, 16, 0)
    assert RECIPES["amp-bf16"].autocast  # the 16-bit weight copies come and go in the walk


@row("s1-lora-frozen")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A frozen bf16 base weight costs 2 bytes and nothing else; the textbook's activations do not change."""
    lora = Lora(rank=8, targets=("q_proj",), base_dtype="bfloat16", adapter_dtype="bfloat16")
    plan = plan_of(replace(textbook_job(recipe="bf16"), lora=lora))
    frozen = states_of(plan, [Weight(name="linear.o", elements=1000, trainable=False, count=1)])
    near(frozen.resident / 1000, expect["bytes"], tolerance)


@row("s2-7b-weights", "s2-7b-12", "s2-7b-16")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Seed B's ledger of a 7B model in GiB."""
    weights = by_category(predict(bare(inputs["params"])), "parameters")
    twelve = predict(bare(inputs["params"], "bf16", optimizer_states="float32")).allocated_bytes
    sixteen = predict(bare(inputs["params"])).allocated_bytes
    found = {13.038516: weights, 78.231096: twelve, 104.308128: sixteen}[expect["gib"]]
    near(found / GIB, expect["gib"], tolerance)


@row("s2-ledger")
def _(*_: Any) -> None:
    """Each state counts by its own format."""
    p = predict(bare(10, "bf16", gradients="float32", master_weights="float32", optimizer_states="float16"))
    assert [by_category(p, key) for key in ("parameters", "gradients", "master_weights", "optimizer_states")] == [20, 40, 40, 40]


@row("s1-inference")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Inference needs only the 16-bit weights."""
    near(stored_bytes(int(inputs["params"]), "bfloat16"), expect["bytes"], tolerance)


@row("s2-dtypes")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Bytes of number formats."""
    names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8"}
    for name, dtype in names.items():
        near(ITEMSIZE[dtype], expect[name], tolerance)
    scales = 4 * (2**20 // 64)
    near((stored_bytes(2**20, "int4") - scales) / 2**20, expect["int4"], tolerance)


@row("s2-amp-gradients")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Autocast keeps fp32 gradients."""
    near(ITEMSIZE[RECIPES["amp-bf16"].gradients], expect["gradient_bytes"], tolerance)


@row("s1-70b-gpus")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The fewest 80 GB cards that hold the sharded states of a 70B model."""
    fewest = next(
        n
        for n in range(1, 100)
        if predict(replace(bare(inputs["params"]), parallelism=Parallelism(world_size=n, sharding="zero3", shard_degree=n))).allocated_bytes
        <= 80 * GB
    )
    assert fewest == expect["gpus"]


# ---- parameters
def weights_named(job: Job, *names: str) -> int:
    """Elements of a layer's weights by name."""
    plan = plan_of(job)
    (stage,) = stages(plan.degrees, plan.architecture.dims["L"], 1)
    return sum(w.elements for w in walk(plan, stage).weights if any(w.name.endswith(name) for name in names))


@row("s1-gpt-layer-params", "s1-gpt-layer-parts")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """12h² + 13h, part by part."""
    h = inputs["hidden" if "hidden" in inputs else "h"]
    job = textbook_job(layers=1, hidden=h, heads=8, micro_batch=1, sequence=8)
    attention, mlp = weights_named(job, ".qkv", ".o"), weights_named(job, ".up", ".down")
    norms = weights_named(job, "norm.layer")
    assert attention + mlp + norms == 12 * h * h + 13 * h == expect.get("params", 12 * h * h + 13 * h)
    if "mlp" in expect:
        assert (attention, mlp, norms) == (expect["attention"], expect["mlp"], expect["norms"])


@row("s1-gpt-1p3b-params")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The worked example's parameters, and the share of 12Lh² in them."""
    parameters = predict(textbook_job(hidden=inputs["hidden"], layers=inputs["layers"], vocabulary=inputs["vocab"])).parameters
    assert parameters == expect["params"]
    near(12 * inputs["layers"] * inputs["hidden"] ** 2 / parameters, expect["share_of_12Lh2"], tolerance)


def llama(layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, vocabulary: int) -> Job:
    """A Llama by dimensions, untied."""
    transformer = Transformer(
        block="llama",
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn_hidden_size=ffn,
        vocab_size=vocabulary,
        tied_embeddings=False,
    )
    return replace(
        textbook_job(framework="huggingface", recipe="bf16", attention="sdpa"),
        model=Model(transformer=transformer),
        batch=Batch(micro_batch_size=1, sequence_length=128),
    )


@row("s1-llama2-7b-params")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The 7B of Llama 2 7B."""
    assert predict(llama(inputs["layers"], inputs["hidden"], inputs["ffn"], 32, 32, inputs["vocab"])).parameters == expect["params"]


@row("s1-llama2-70b")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Grouped queries: W_K and W_V are h × h/g."""
    assert predict(llama(inputs["L"], inputs["h"], inputs["f"], 64, 64 // inputs["g"], inputs["V"])).parameters == expect["params"]


@row("s1-llama-layer-12h2")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The gated feed-forward part has 8h² parameters at f = 8h/3."""
    job = llama(1, inputs["h"], inputs["f"], 24, 24 // inputs["g"], 1000)
    assert weights_named(job, ".gate", ".up", ".down") == expect["mlp"]
    assert weights_named(job, ".k", ".v") == expect["kv"]


@row("s1-gpt2-small")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Learned positions and a tied head: GPT-2, by the textbook's layer and by its own family."""
    job = with_model(
        textbook_job(layers=inputs["L"], hidden=inputs["h"], heads=12, vocabulary=inputs["V"], sequence=inputs["positions"]),
        max_positions=inputs["positions"],
    )
    assert predict(job).parameters == expect["params"]
    assert predict(with_model(job, block="gpt2")).parameters == expect["params"]


# ---- what an operation keeps
@row("s1-linear-activation", "s1-keeps-linear")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A linear keeps its input."""
    near(
        kept_by_kernel("linear", {"x": (inputs["tokens" if "tokens" in inputs else "n"], inputs["d_in"], 2)}, 1024),
        expect["bytes"],
        tolerance,
    )


@row("s1-keeps-gelu")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """GeLU keeps its input."""
    near(kept_by_kernel("gelu", {"x": (1, 1, 2)}), expect["bytes"], tolerance)


@row("s1-keeps-softmax")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Softmax keeps its output."""
    near(kept_by_kernel("softmax", {"x": (1, 1, 2)}), expect["bytes"], tolerance)


@row("s1-keeps-dropout")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Dropout keeps a byte an element."""
    near(kept_by_kernel("dropout", {"x": (1, 1, 2)}), expect["bytes"], tolerance)


@row("s1-keeps-layernorm")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """LayerNorm keeps its input; two fp32 numbers a row come on top outside the textbook."""
    near(kept_by_kernel("layer_norm_textbook", {"x": (1, 1, 2)}), expect["bytes"], tolerance)
    assert kept_by_kernel("layer_norm", {"x": (1, 1, 2)}) == expect["bytes"] + 8


@row("s1-keeps-product")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A product of two activations keeps both."""
    near(kept_by_kernel("matmul", {"x0": (1, 1, 2), "x1": (1, 1, 2)}), expect["bytes"], tolerance)


@row("s1-keeps-residual")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A residual add keeps nothing."""
    near(kept_by_kernel("add", {"x0": (4, 8, 2), "x1": (4, 8, 2)}), expect["bytes"], tolerance)


# ---- the theorem
@row("s1-act-theorem")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """34sbh + 5as²b falls out of the operations."""
    got = layer_bytes(sequence=inputs["s"], micro_batch=inputs["b"], hidden=inputs["h"], heads=inputs["a"])
    near(got, expect["bytes"], tolerance)
    assert got == 34 * SBH + 5 * AS2B


@row("s1-act-parts")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Attention 11 + 2 for its norm, core 5, feed-forward part 19 + 2 for its norm."""
    flash, eager = textbook_job(attention="flash"), textbook_job()
    attention = kept_by_block(BLOCKS["attention_textbook"], flash) / SBH
    core = (kept_by_block(BLOCKS["attention_textbook"], eager) - attention * SBH) / AS2B
    norm = kept_by_kernel("layer_norm_textbook", {"x": (S * B, H, 2)}) / SBH
    assert (attention, attention + norm, core) == (expect["attention_block"], expect["attention_linear"], expect["core"])
    assert kept_by_block(BLOCKS["mlp_plain"], flash) / SBH + norm == expect["mlp_and_norm2"]


@row("s1-act-flash")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """FlashAttention leaves 34sbh, and 4asb bytes of log-sum-exp in a real kernel."""
    near(layer_bytes(attention="flash") / SBH, expect["sbh"], tolerance)
    shape = dict.fromkeys(("q", "k", "v"), (S * B, H, 2))
    with pytest.raises(KeyError):  # the real kernel's row names the log-sum-exp, which needs the job's dimensions
        kept_by_kernel("flash", shape)
    real = layer_bytes(attention="flash", framework="huggingface", recipe="bf16")
    assert real - 34 * SBH == pytest.approx(4 * A * S * B + 16 * S * B, abs=64)


@row("s1-act-selective")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Selective recomputation keeps 34sbh; for GPT-3 the core was 70 % and costs 0.9 % more FLOPs."""
    a, s, h = inputs["a"], inputs["s"], inputs["h"]
    selective = Checkpointing(mode="selective")
    more = [
        activations(predict(textbook_job(layers=n, hidden=h, heads=a, sequence=s, micro_batch=1, checkpointing=selective))) for n in (2, 3)
    ]
    near((more[1] - more[0]) / (s * h), expect["sbh"], tolerance)
    whole = layer_bytes(hidden=h, heads=a, sequence=s, micro_batch=1)
    near((whole - 34 * s * h) / whole, expect["core_share"], tolerance)
    cost = next(c for c in fixes(textbook_job(hidden=h, heads=a, sequence=s)) if c.title.startswith("selective")).relative_step_time
    near(cost - 1, expect["extra_flops"], tolerance)


@row("s1-act-full-ckpt")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Full checkpointing keeps 2sbh a layer, for a third more FLOPs."""
    full = Checkpointing(mode="full")
    more = [activations(predict(textbook_job(layers=n, checkpointing=full))) for n in (5, 6)]
    near((more[1] - more[0]) / SBH, expect["sbh"], tolerance)
    near(FULL_CHECKPOINTING_TIME - 1, expect["extra_flops"], tolerance)


@row("s1-act-no-dropout")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Without dropout the softmax output is stored once and the masks go."""
    assert layer_bytes(dropout=0.0) == expect["sbh"] * SBH + expect["as2b"] * AS2B


@row("s1-core-crossover")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The core passes the linear part between s = 870 and s = 871."""
    h, a = inputs["h"], inputs["a"]

    def core_leads(s: int) -> bool:
        linear = layer_bytes(attention="flash", hidden=h, heads=a, sequence=s, micro_batch=1)
        return layer_bytes(hidden=h, heads=a, sequence=s, micro_batch=1) > 2 * linear

    near(34 * h / (5 * a), expect["s"], tolerance)
    assert not core_leads(math.floor(expect["s"]))
    assert core_leads(math.ceil(expect["s"]))


@row("s1-act-tp", "s1-act-tp-sp")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """sbh(10 + 24/t + 5as/(ht)); with sequence parallelism all of it divided by t."""
    sequence = expect["sbh"] == 14.25
    parallelism = Parallelism(tensor=inputs["t"], world_size=inputs["t"], sequence_parallel=sequence)
    near(layer_bytes(parallelism=parallelism) / SBH, expect["sbh"], tolerance)


@row("s1-tp-unsplit-10")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """What tensor parallelism leaves whole, from two degrees: 34 = whole + split, and the split part halves."""
    two, four = (layer_bytes(attention="flash", parallelism=Parallelism(tensor=t, world_size=t)) / SBH for t in (2, 4))
    near(2 * four - two, expect["sbh"], tolerance)


@row("s1-pp-1f1b")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The first of p stages holds p micro-batches of L/p layers: as much as L layers."""
    p, layers = inputs["p"], inputs["layers"]
    parallelism = Parallelism(pipeline=p, world_size=p)
    job = textbook_job(layers=layers, attention="flash", parallelism=parallelism, accumulation=2 * p)
    prediction = predict(job)
    assert prediction.pipeline_stage == 0
    near(activations(prediction) / (34 * SBH), expect["layers_worth"], tolerance)


@row("s1-dp-zero")
def _(*_: Any) -> None:
    """Data parallelism and ZeRO change no activation; ZeRO divides only states."""
    found = {
        kind: predict(textbook_job(parallelism=Parallelism(world_size=8, sharding=kind))) for kind in ("ddp", "zero1", "zero2", "zero3")
    }
    assert len({activations(p) for p in found.values()}) == 1
    assert [states(found[k]) for k in ("ddp", "zero1", "zero2", "zero3")] == sorted((states(p) for p in found.values()), reverse=True)
    near(states(found["zero3"]), states(found["ddp"]) / 8, 1e-6)


@row("s1-logits")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """fp32 logits, 4sbV."""
    near(
        by_category(predict(textbook_job(sequence=inputs["s"], micro_batch=inputs["b"], vocabulary=inputs["V"])), "logits"),
        expect["bytes"] + 4,
        1e-8,
    )


# ---- the worked example
@row("s1-worked-plain", "s1-worked-flash")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """116 GB without FlashAttention, 51.7 GB with it."""
    p = predict(textbook_job(attention="flash" if inputs["flash"] else "eager"))
    near(p.allocated_bytes, expect["total"], tolerance)
    near(activations(p), expect["activations"], tolerance)
    if "states" in expect:
        near(states(p), expect["states"], tolerance)
        near(by_category(p, "logits"), expect["logits"], tolerance)
    assert (p.allocated_bytes <= 80 * GB) == expect["fits_80GB"]
    assert p.peak_phase == "backward"  # the turn from forward to backward


@row("s1-worked-ckpt")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """27.0 GB with full checkpointing on top."""
    near(predict(textbook_job(attention="flash", checkpointing=Checkpointing(mode="full"))).allocated_bytes, expect["total"], tolerance)


@row("s1-worked-ckpt-parts")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Layer inputs 1.6 GB and one rebuilt layer 1.1 GB."""
    full = Checkpointing(mode="full")
    p = predict(textbook_job(attention="flash", checkpointing=full))
    near(p.saved_activation_bytes_per_layer, expect["rebuilt"], tolerance)
    near(activations(p) - p.saved_activation_bytes_per_layer, expect["inputs"], tolerance)


@row("s1-worked-max-batch")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The largest micro-batch in 85 % of 80 GB."""
    budget = (1 - inputs["free"]) * 80 * GB

    def largest(checkpointing: Checkpointing | None) -> int:
        def fits(size: int) -> bool:
            return bool(predict(textbook_job(attention="flash", micro_batch=size, checkpointing=checkpointing)).allocated_bytes <= budget)

        return max(size for size in range(1, 100) if fits(size))

    assert largest(None) == expect["flash"]
    assert largest(Checkpointing(mode="full")) == expect["flash_and_full_checkpoint"]


@row("s1-worked-per-sequence")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """What one more sequence costs."""
    for mode, name in (("none", "flash"), ("full", "flash_and_full_checkpoint")):
        one, two = (
            predict(textbook_job(attention="flash", micro_batch=b, checkpointing=Checkpointing(mode=mode))).allocated_bytes for b in (1, 2)
        )
        near(two - one, expect[name], tolerance)


@row("s1-worked-zero2")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """ZeRO-2 over 8 GPUs of 40 GB."""
    parallelism = Parallelism(world_size=inputs["dp"], sharding="zero2")
    p = predict(textbook_job(attention="flash", parallelism=parallelism))
    near(states(p), expect["states"], tolerance)
    near(p.allocated_bytes, expect["total"], tolerance)
    near(predict(textbook_job(attention="flash", micro_batch=4, parallelism=parallelism)).allocated_bytes, expect["total_b4"], tolerance)


# ---- checkpoints every k layers
def every_k(layers: int, k: int) -> float:
    """Activations at the peak in units of sbh."""
    return activations(predict(textbook_job(layers=layers, attention="flash", checkpointing=Checkpointing(mode="full", every=k)))) / SBH


@row("s1-every-k")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """M(k) = (L/k)c + kA."""
    near(every_k(inputs["L"], 6), expect["k6"], tolerance)
    near(every_k(inputs["L"], 1), expect["k1"], tolerance)


@row("s1-every-k-80")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """For 80 layers two layers a checkpoint are best."""
    found = {k: every_k(inputs["L"], k) for k in (1, 2, 4, 5, 8, 10)}
    assert (found[1], found[2]) == (expect["k1"], expect["k2"])
    assert min(found, key=lambda k: found[k]) == expect["best_k"]


@row("s1-every-k-opt")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """k* = sqrt(Lc/A) from walked c and A; no k is below 2 sqrt(LcA)."""
    layers = inputs["L"]
    c, a = every_k(layers + 1, 1) - every_k(layers, 1), layer_bytes(attention="flash") / SBH
    near(math.sqrt(layers * c / a), expect["k_star"], tolerance)
    assert all(every_k(layers, k) >= 2 * math.sqrt(layers * c * a) for k in (1, 2, 3, 4, 6))
    assert min((1, 2, 3, 4, 6), key=lambda k: every_k(layers, k)) == round(expect["k_star"])


@row("s1-chen-sqrt")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Where a checkpoint costs as much as a layer, M(k) = L/k + k is least at sqrt(L)."""
    layers = inputs["L"]
    near(min(range(1, layers + 1), key=lambda k: layers / k + k), expect["k_star"], tolerance)


# ---- rules of scale
@row("s1-predict-first-2")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Double s and halve b: the linear part stays, the core doubles."""
    linear = [layer_bytes(attention="flash", sequence=s, micro_batch=b) for s, b in ((S, B), (2 * S, B // 2))]
    core = [layer_bytes(sequence=s, micro_batch=b) - linear[0] for s, b in ((S, B), (2 * S, B // 2))]
    near(linear[1] / linear[0], expect["linear_ratio"], tolerance)
    near(core[1] / core[0], expect["core_ratio"], tolerance)


@row("s2-scaling")
def _(*_: Any) -> None:
    """Linear in batch and layers; linear in the sequence but for the eager core."""
    assert layer_bytes(micro_batch=4) * 2 == layer_bytes(micro_batch=8)
    assert layer_bytes(attention="flash", sequence=1024) * 2 == layer_bytes(attention="flash", sequence=2048)
    core = [layer_bytes(sequence=s) - layer_bytes(attention="flash", sequence=s) for s in (1024, 2048)]
    assert core[1] == 4 * core[0]
    few, many = (activations(predict(textbook_job(layers=n))) for n in (6, 12))
    assert many == 2 * few


@row("s1-long-context")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A context of 32,768: 4.6 GB a layer without the core, which would be 1280sbh."""
    s, a, h = 32768, 32, 4096
    flash = layer_bytes(attention="flash", sequence=s, micro_batch=1, hidden=h, heads=a)
    near(flash, expect["per_layer"], tolerance)
    near(32 * flash, expect["all"], tolerance)
    near((layer_bytes(sequence=s, micro_batch=1, hidden=h, heads=a) - flash) / (s * h), expect["core_over_sbh"], tolerance)


@row("s1-weather")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A global grid in patches is a sequence."""
    batch = Batch(grid=tuple(inputs["grid"]), patch=(inputs["patch"], inputs["patch"]))
    near(sequence_of(Job(batch=batch)), expect["tokens"], tolerance)


@row("s2-qkv")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Q, K, V of one layer at B=1, T=D=4096."""
    job = textbook_job(attention="flash", hidden=4096, heads=32, sequence=4096, micro_batch=1, dropout=0.0)
    attention = kept_by_block(BLOCKS["attention_textbook"], job)
    inputs_of_linears = 2 * kept_by_kernel("linear", {"x": (4096, 4096, 2)}, 4096)  # of the qkv and the output product
    near((attention - inputs_of_linears) / 2**20, expect["mib"], tolerance)


@row("s2-scores")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """One (B, H, T, T) tensor at 1 × 32 × 4096 × 4096, and four times as much at twice the length."""
    kept = {t: kept_by_kernel("softmax", {"x": (t, 32 * t, 2)}) for t in (4096, 8192)}
    near(kept[4096] / GIB, expect["gib"], tolerance)
    assert kept[8192] == 4 * kept[4096]


@row("s2-mlp")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The inner tensor of the feed-forward part: what GeLU keeps."""
    near(kept_by_kernel("gelu", {"x": (4096, 4 * 4096, 2)}) / 2**20, expect["mib"], tolerance)


@row("s1-saved-hooks")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """The seed's own bf16 layer under a saved-tensors hook; the CPU keeps LayerNorm's statistics in 2 bytes, CUDA in 4."""
    sizes: dict[str, Any] = {"hidden": 256, "heads": 4, "sequence": 256, "micro_batch": 2}
    tokens, sbh = 512, 512 * 256
    statistics = 2 * tokens * 2 * (4 - 2)
    near(layer_bytes(**sizes) / sbh, expect["eager"], tolerance)
    near((layer_bytes(attention="flash", framework="huggingface", recipe="bf16", **sizes) - statistics) / sbh, expect["flash"], tolerance)
    full = [activations(predict(textbook_job(layers=n, checkpointing=Checkpointing(mode="full"), **sizes))) for n in (5, 6)]
    near((full[1] - full[0]) / sbh, expect["checkpoint"], tolerance)


@row("s1-create-graph")
def _(*_: Any) -> None:
    """With create_graph the first backward pass frees nothing that it has read, and its gradients stay."""

    def live_after(*, create_graph: bool) -> int:
        meter = Meter(lambda nbytes: nbytes)
        tape = Tape(meter, {}, create_graph=create_graph)
        x = Tensor(Storage(100, "temporaries", meter), 1, 50, 2, Node([], {}, (0, 0), run=lambda _: None))
        y = tape.apply(KERNELS["gelu"], {"x": x}, {"y": (1, 50, 2)}, "temporaries")["y"]
        assert y.node is not None
        y.node.grads["y"] = tape.allocate(100)
        tape.backward(tape.nodes)
        return meter.live

    assert live_after(create_graph=True) == live_after(create_graph=False) + 100  # the incoming gradient; the input is held by x as well


@row("s1-cpu-dropout")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """A mask in the activation's format is one byte an element more, on two hidden masks and one of the scores."""
    mask = kept_by_kernel("dropout", {"x": (1, 1, 2)})
    assert (2 - mask) * 2 == expect["sbh"]
    assert 2 - mask == expect["as2b"]


@row("s1-check5")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """Rebuilding the core: 4bs²h FLOPs beside 72bsh²; the suggestion's cost counts the whole step."""
    s, h = inputs["s"], inputs["h"]
    near(4 * s * s * h / (72 * s * h * h), expect["ratio"], tolerance)
    cost = next(c for c in fixes(textbook_job(hidden=h, heads=96, sequence=s)) if c.title.startswith("selective")).relative_step_time - 1
    assert 0.9 * expect["ratio"] < cost < expect["ratio"]


@row("s1-hfu")
def _(*_: Any) -> None:
    """A plan's cost counts useful FLOPs: recomputed ones make the step longer and are no progress."""
    useful, done = 6, 8
    near(FULL_CHECKPOINTING_TIME, done / useful, 0)


@row("s1-fix-order")
def _(*_: Any) -> None:
    """The fixes come in the seed's order of cost."""
    job = replace(textbook_job(parallelism=Parallelism(world_size=8, sharding="ddp")), gpu=Gpu(type="h100-80gb", count=8))
    titles = [change.title for change in fixes(job)]
    first = [
        next(i for i, title in enumerate(titles) if title.startswith(start))
        for start in (
            "FlashAttention",
            "selective",
            "ZeRO-1",
            "ZeRO-2",
            "micro-batch",
            "full activation",
            "ZeRO-3",
            "tensor",
            "pipeline",
            "offload",
        )
    ]
    assert first == sorted(first)


# ---- seed B: measures, moments, techniques
@row("s2-three-layers")
def _(*_: Any) -> None:
    """allocated <= reserved <= what nvidia-smi shows: three numbers."""
    p = predict(textbook_job(framework="huggingface", recipe="bf16"))
    assert p.live_bytes < p.allocated_bytes < p.reserved_bytes < p.device_bytes


@row("s2-lazy-adam", "s2-warmup")
def _(*_: Any) -> None:
    """Adam's moments appear at the first step: forward and backward pass on a card that the first step does not fit."""
    job = textbook_job(framework="huggingface", recipe="fp32", micro_batch=1, sequence=128)
    first, steady = predict(job).phase_peaks[1:5], predict(job).phase_peaks[5:]
    card = max(dict(first)[phase] for phase in ("forward", "loss", "backward"))
    assert next(phase for phase, size in predict(job).phase_peaks if size > card) == "optimizer"
    assert all(dict(first)[phase] <= dict(steady)[phase] for phase in dict(steady))
    assert dict(first)["forward"] < dict(steady)["forward"]


@row("s2-technique-map")
def _(*_: Any) -> None:
    """Each technique moves its own lines of the ledger."""
    base = textbook_job(framework="huggingface", recipe="fp32", layers=4, accumulation=1)
    plain = predict(base)

    def lines(job: Job) -> set[str]:
        after = predict(job)
        names = ("parameters", "gradients", "master_weights", "optimizer_states", "activations")
        return {name for name in names if by_category(after, name) < by_category(plain, name)}

    assert lines(replace(base, precision=Precision(recipe="bf16"))) == {"parameters", "optimizer_states", "activations"}
    assert lines(replace(base, batch=replace(base.batch, micro_batch_size=4, gradient_accumulation_steps=2))) == {"activations"}
    assert lines(replace(base, checkpointing=Checkpointing(mode="full"))) == {"activations"}
    assert lines(replace(base, attention=replace(base.attention, implementation="flash"))) == {"activations"}
    ddp = replace(base, parallelism=Parallelism(world_size=8, sharding="ddp"))
    assert lines(ddp) == set()
    assert "optimizer_states" in lines(replace(base, parallelism=Parallelism(world_size=8, sharding="zero1")))
    assert {"parameters", "optimizer_states"} <= lines(replace(base, parallelism=Parallelism(world_size=8, sharding="fsdp")))
    assert lines(replace(base, optimizer=Optimizer(name="adamw-8bit", implementation="fused"))) == {"optimizer_states"}
    assert "activations" in lines(replace(base, parallelism=Parallelism(world_size=2, tensor=2, sequence_parallel=True)))


@row("s2-lower-precision")
def _(*_: Any) -> None:
    """Lower precision lowers states and activations."""
    fp32, bf16 = (predict(textbook_job(framework="huggingface", recipe=recipe, attention="flash")) for recipe in ("fp32", "bf16"))
    assert states(bf16) < states(fp32)
    assert activations(bf16) < activations(fp32)


@row("s2-allocated-cube")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """torch.randn(1000, 1000, 1000): a block of its own that is not rounded up further than 512 bytes."""
    near(block_bytes(4 * 1000**3) / 2**20, expect["mib"], tolerance)


@row("s2-minigpt-trace")
def _(*_: Any) -> None:
    """A small GPT's step, phase by phase: parameters first, activations rise, gradients come, moments stay."""
    job = replace(
        textbook_job(layers=2, hidden=64, heads=4, vocabulary=1000, micro_batch=4, sequence=32, framework="huggingface", recipe="fp32"),
        framework=Framework(name="torch"),
    )
    timeline = predict(job).timeline
    forward = [point.allocated_bytes for point in timeline if point.phase == "forward"]
    assert forward == sorted(forward)
    assert forward[-1] > forward[0]
    peaks = predict(job).phase_peaks
    assert peaks[0][0] == "load"
    assert peaks[0][1] < dict(peaks[1:5])["forward"] < dict(peaks[5:])["forward"]
    assert dict(peaks[1:5])["optimizer"] > dict(peaks[1:5])["forward"]


@row("s2-which-category")
def _(*_: Any) -> None:
    """The largest line of a job that does not fit is its first word: here the activations."""
    p = predict(textbook_job())
    assert max(p.ledger, key=lambda line: line.bytes).category == "activations"


@row("s1-keep-free")
def _(*_: Any) -> None:
    """Instead of 10 to 20 % of the card, a learned bound above what is required."""
    required = predict(textbook_job(framework="huggingface", recipe="bf16")).required_bytes
    bound = Snapshot().bound(group="huggingface/none/bfloat16", required_bytes=required, coverage=0.95).bound_bytes
    assert required < bound < 1.2 * required


@row("s2-cuda-graph-pools")
def _(*_: Any) -> None:
    """Pools of CUDA graphs are part of runtime memory: a job that states them is never admitted as if they were free."""
    job = replace(textbook_job(), framework=Framework(name="textbook", cuda_graphs="full-iteration"))
    assert any("CUDA graphs" in reason for reason in predict(job).undecided)


def test_offload_is_the_last_resort() -> None:
    """Offloaded optimizer states leave the card and appear on the host."""
    job = replace(textbook_job(), offload=Offload(optimizer="cpu"))
    assert by_category(predict(job), "optimizer_states") == 0
    assert predict(job).host_bytes == 12 * predict(job).parameters
