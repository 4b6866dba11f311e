"""What one token costs a model, before any number of the plan: the products, the attention cores and the bytes of everything else.

Shapes are those of the model's own weights (`weights_of_plan`), so a new family needs no line here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from peakgate.memory.census import smallest
from peakgate.memory.dtypes import ITEMSIZE, QUANTISED, stored_bytes
from peakgate.memory.frozen import ATTENTION
from peakgate.memory.plan import Degrees, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.states import quantisable
from peakgate.memory.weighing import weights_of_plan
from peakgate.memory.weights import Weight

HEADS = ("linear.head", "embedding.V")
"""Weights of the product behind the layers; an embedding has the shape of one where it is tied to the head."""


@dataclass(frozen=True, slots=True)
class Product:
    """Equal products of all layers: a (rows, wide) by a (wide, split) matrix. Tensor parallelism divides `split`, of the input or the
    output."""

    part: str
    """attention, mlp, experts or head."""
    wide: int
    split: int
    trained: bool
    copies: int = 1
    """Weights of which each row reads one (experts)."""
    rows: float = 1.0
    """Rows a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The sizes that costs follow from; elements are of the whole model."""

    products: tuple[tuple[Product, int], ...]
    """With how many there are."""
    layers: int
    routed_layers: int
    trained: int
    """Elements that are trained, but for experts …"""
    trained_experts: int
    """… and these."""
    total: int
    total_experts: int
    tensors: int
    """Weights that are trained."""
    orthogonal_flops: float
    """Of Muon's step on all matrices."""
    dequantised_bytes: float
    """Read and written to make a quantised base whole, once a pass."""
    saved_elements: float
    """Inputs of a layer's linear parts, a token: what is offloaded of a layer that is not checkpointed."""


def work_of(plan: Plan) -> Work:
    """The work of a model on one rank without any parallelism."""
    few = replace(smallest(plan), degrees=Degrees(), attention="eager", optimizer="adamw", implementation="foreach", vocabulary_multiple=0)
    return _work_of(replace(few, offload_optimizer=False, offload_parameters=False, offload_activations=False, fused_kernels=frozenset()))


@lru_cache(maxsize=512)
def _work_of(plan: Plan) -> Work:
    weights, dims = weights_of_plan(plan), plan.architecture.dims
    products = _network_products(plan) if plan.architecture.network else _products(plan, weights)
    trained = [w for w in weights if w.trainable]
    layers = max(1, dims["L"])
    kept = sum(p.rows * p.wide * count for p, count in products.items() if p.part != "head")
    return Work(
        products=tuple(products.items()),
        layers=layers,
        routed_layers=sum(w.count for w in weights if w.name == "experts.down"),
        trained=_elements(w for w in trained if not _is_expert(w)),
        trained_experts=_elements(w for w in trained if _is_expert(w)),
        total=_elements(w for w in weights if not _is_expert(w)),
        total_experts=_elements(w for w in weights if _is_expert(w)),
        tensors=sum(w.count for w in trained),
        orthogonal_flops=sum(w.count * _orthogonal_flops(w) for w in trained),
        dequantised_bytes=_dequantised_bytes(plan, weights),
        saved_elements=kept / layers,
    )


def _elements(weights: Iterable[Weight]) -> int:
    return sum(w.elements * w.count for w in weights)


def _is_expert(weight: Weight) -> bool:
    return weight.name.startswith("expert")


def _products(plan: Plan, weights: tuple[Weight, ...]) -> Counter[Product]:
    found: Counter[Product] = Counter()
    for weight in weights:
        if weight.shape is not None:
            found[_product(plan, weight, *weight.shape)] += weight.count
    return found


def _product(plan: Plan, weight: Weight, out: int, into: int) -> Product:
    dims = plan.architecture.dims
    if weight.name.startswith("experts."):
        width = weight.elements // (dims["E"] * dims["h"])
        return Product("experts", dims["h"], width, weight.trainable, dims["E"], dims["k"])
    tag = weight.name.partition(".")[2]
    part = "head" if weight.name in HEADS else "attention" if tag in ATTENTION else "mlp"
    wide, split = (into, out) if tag not in ("o", "down") else (out, into)
    return Product(part, wide, split, weight.trainable)


def _network_products(plan: Plan) -> Counter[Product]:
    """Of a plain network: convolutions and linear layers, one row for each place of their output."""
    found: Counter[Product] = Counter()
    network = plan.architecture.network
    for layer in network.layers if network else ():
        shape, weight = layer.made.shape, layer.made.weight
        out = shape[-1] if layer.op == "linear" else shape[0]
        if weight > out and layer.op != "embedding":
            found[Product("mlp", weight // out, out, trained=True, rows=prod(shape) / out)] += 1
    return found


def _orthogonal_flops(weight: Weight) -> float:
    """Five Newton-Schulz steps, of which each has three products (Jordan et al. 2024, Muon: 4nm² + 2m³ with m the shorter side)."""
    if weight.shape is None or weight.name in HEADS:
        return 0.0
    short, long = sorted(weight.shape)
    return 5.0 * (4 * long * short**2 + 2 * short**3)


def _dequantised_bytes(plan: Plan, weights: tuple[Weight, ...]) -> float:
    """bitsandbytes autograd/_functions.py, MatMul4Bit: the weight is made whole before each product."""
    lora = plan.lora
    if lora is None or lora.base_dtype not in QUANTISED:
        return 0.0
    elements = sum(w.elements * w.count for w in weights if not w.trainable and quantisable(w.name, profile_of(plan.profile).whole))
    return stored_bytes(elements, lora.base_dtype) + elements * ITEMSIZE[plan.formats.compute]
