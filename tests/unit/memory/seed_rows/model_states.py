"""Model states and parameter counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.memory.builders import category_bytes
from tests.unit.memory.seed_rows.registry import GB, GIB, bare, near, row
from tests.unit.memory.seeds import kept_by_kernel, plan_of, textbook_job, with_model

from peakgate.memory.dtypes import ITEMSIZE, stored_bytes
from peakgate.memory.job import (
    Batch,
    Job,
    Lora,
    Model,
    Parallelism,
    Transformer,
)
from peakgate.memory.pipeline import stages
from peakgate.memory.predict import predict
from peakgate.memory.recipes import RECIPES
from peakgate.memory.states import states_of
from peakgate.memory.step import walk
from peakgate.memory.weights import Weight


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
    weights = category_bytes(predict(bare(inputs["params"])), "parameters")
    twelve = predict(bare(inputs["params"], "bf16", optimizer_states="float32")).allocated_bytes
    sixteen = predict(bare(inputs["params"])).allocated_bytes
    found = {13.038516: weights, 78.231096: twelve, 104.308128: sixteen}[expect["gib"]]
    near(found / GIB, expect["gib"], tolerance)


@row("s2-ledger")
def _(*_: Any) -> None:
    """Each state counts by its own format."""
    p = predict(bare(10, "bf16", gradients="float32", master_weights="float32", optimizer_states="float16"))
    assert [category_bytes(p, key) for key in ("parameters", "gradients", "master_weights", "optimizer_states")] == [20, 40, 40, 40]


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
