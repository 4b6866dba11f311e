"""The worked example, checkpoints every k layers, rules of scale."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tests.unit.memory.builders import category_bytes
from tests.unit.memory.seed_rows.registry import GB, GIB, near, row
from tests.unit.memory.seeds import (
    SBH,
    B,
    S,
    activations,
    kept_by_block,
    kept_by_kernel,
    layer_bytes,
    plan_of,
    relative_flops,
    states,
    textbook_job,
)

from peakgate.memory.job import (
    Batch,
    Checkpointing,
    Gpu,
    Job,
    Parallelism,
)
from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.kernels import NO_FORMULA
from peakgate.memory.lengths import sequence_of
from peakgate.memory.library import BLOCKS
from peakgate.memory.meter import Meter
from peakgate.memory.predict import predict
from peakgate.memory.storage import Storage
from peakgate.memory.suggest.levers import OPTIONS
from peakgate.memory.tape import Node, Tape, Tensor


# ---- the worked example
@row("s1-worked-plain", "s1-worked-flash")
def _(inputs: dict[str, Any], expect: dict[str, Any], tolerance: float) -> None:
    """116 GB without FlashAttention, 51.7 GB with it."""
    p = predict(textbook_job(attention="flash" if inputs["flash"] else "eager"))
    near(p.allocated_bytes, expect["total"], tolerance)
    near(activations(p), expect["activations"], tolerance)
    if "states" in expect:
        near(states(p), expect["states"], tolerance)
        near(category_bytes(p, "logits"), expect["logits"], tolerance)
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
        x = Tensor(Storage(100, "temporaries", meter), 1, 50, 2, Node(NO_FORMULA, {}, (0, 0), run=lambda _: None))
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
    cost = relative_flops(textbook_job(hidden=h, heads=96, sequence=s), ("checkpointing.mode", "selective")) - 1
    assert 0.9 * expect["ratio"] < cost < expect["ratio"]


@row("s1-hfu")
def _(*_: Any) -> None:
    """A plan's cost counts useful FLOPs: recomputed ones make the step longer and are no progress."""
    useful, done = 6, 8
    wide = textbook_job(hidden=1 << 14, vocabulary=128, sequence=128)
    near(relative_flops(wide, ("checkpointing.mode", "full")), done / useful, 0.005)


@row("s1-fix-order")
def _(*_: Any) -> None:
    """The levers stand in the seed's order, which decides between plans of equal cost; `test_step_time.py` holds the costs against it."""
    job = replace(textbook_job(parallelism=Parallelism(world_size=8, sharding="ddp")), gpu=Gpu(type="h100-80gb", count=8))
    plan = plan_of(job)
    titles = [option.title for option in OPTIONS if plan.framework in option.frameworks and option.applies(job, plan)]
    order = ("FlashAttention", "selective", "ZeRO-1", "ZeRO-2", "full activation", "ZeRO-3", "tensor", "pipeline", "offload")
    first = [next(i for i, title in enumerate(titles) if title.startswith(start)) for start in order]
    assert first == sorted(first)
