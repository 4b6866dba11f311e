"""Products in 8 bits: what Transformer Engine's linear layers keep then, and the 8-bit copies of weights that a Megatron-LM rank holds.

Sources: Transformer Engine 2.20 (T: transformer_engine/pytorch) module/linear.py and layernorm_linear.py (forward and backward),
module/base.py (grad_output_preprocess, quantize_weight), distributed.py (_all_gather_fp8, _all_gather_mxfp8), tensor/float8_tensor.py and
mxfp8_tensor.py; Megatron-LM (M: megatron/core) extensions/transformer_engine.py (is_first_microbatch: the copies of weights stay),
transformer/attention.py (set_save_original_input: the output projection keeps what attention keeps anyway, unless scaling is delayed).

An operand is quantised in the two directions that the forward and the backward product read. The first goes when the forward product is
done, the second is kept: one byte an element where bfloat16 keeps two. Scales of one number a tensor are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakgate.memory import kernels
from peakgate.memory.forms import block_of

if TYPE_CHECKING:
    from peakgate.memory.plan import Plan
    from peakgate.memory.weights import Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A number format: elements a scale (0: one a tensor), whether the two directions are two copies, and what is gathered."""

    per_scale: int = 0
    copies: int = 2
    gathers_kept: bool = False
    """The kept direction is gathered along the sequence; else the other one is kept, gathered and turned over."""

    def take(self, name: str, base: str, over: int = 1, *, keep: bool = False) -> str:
        """The steps that quantise an operand in one direction; `over`: bytes of its own element."""
        mark, data = "!" if keep else "", f":1/{over}" if over > 1 else ":1"
        scale = f" {name}s{mark}={base}:1/{over * self.per_scale}" if self.per_scale else ""
        return f"{name}{mark}={base}{data}{scale}"

    def free(self, name: str) -> str:
        """The steps that let go of it."""
        return f"-{name}" + (f" -{name}s" if self.per_scale else "")

    def reads(self, name: str) -> str:
        """What a gradient reads of it."""
        return f"{name},{name}s" if self.per_scale else name

    def weight_bytes(self, elements: int, copies: int) -> int:
        """An 8-bit weight in so many copies."""
        scales = block_of(elements // self.per_scale) if self.per_scale else 0
        return copies * (block_of(elements) + scales)


TENSOR = Layout()
TENSOR_ONCE = Layout(copies=1)
"""From capability 10 to 11, and from 13 on, products take both layouts (T/utils.py: is_non_tn_fp8_gemm_supported)."""
MX = Layout(per_scale=32, gathers_kept=True)
"""One byte for 32 elements; blocks of 128 with a scale of four bytes take as much (tensor/float8_blockwise_tensor.py: get_scale_shape)."""

LAYOUTS = {"tensor": TENSOR, "once": TENSOR_ONCE, "mx": MX}


def layout_name(plan: Plan) -> str:
    """The layout of a plan's recipe on its card."""
    if plan.fp8 in ("mxfp8", "blockwise"):
        return "mx"
    capability = plan.capability or (9, 0)
    return "once" if (10, 0) <= capability < (12, 0) or capability >= (13, 0) else "tensor"


def _rows(name: str, layout: Layout) -> str:
    """A linear layer alone, with its input gathered, and with its output scattered; `saved`: it keeps its input as it was."""
    two = layout.copies > 1
    first, done = (layout.take("a", "x") + " ", " " + layout.free("a")) if two else ("", "")
    kept, read = layout.take("c", "x", keep=True), layout.reads("c")
    gradient = layout.take("o", "gy", 2) + (" " + layout.take("p", "gy", 2) if two else "")
    sent = f"{layout.take('q', 'gy', 2)} {layout.take('g', 'gy*tensor', 2)} {layout.free('q')}"
    turned = f" {layout.take('t', 'gy*tensor', 2)}" if two else ""
    whole = layout.take("g", "x*tensor")
    again = f"{whole} {layout.take('t', 'x*tensor')}" if two and not layout.gathers_kept else whole
    local = f"{first}{kept}" if layout.gathers_kept else kept
    rows = {
        f"linear{{}}_te_{name}": f"{first}{kept} y=out{done} | w({read}): {gradient}; x(w): gx=x",
        f"linear{{}}_saved_te_{name}": f"{layout.take('a', 'x')} y=out {layout.free('a')} "
        f"| w(x): {gradient} {layout.take('k', 'x')}; x(w): gx=x",
        f"linear{{}}_gathered_te_{name}": f"{local} {whole} y=out {layout.free('g')}{done if layout.gathers_kept else ''} "
        f"| w({read}): {gradient} {again}; x(w): f=x*tensor gx=x -f",
        f"linear{{}}_scattered_te_{name}": f"{first}{kept} f=out*tensor y=out -f{done} | w({read}): {sent}{turned}; x(w): gx=x",
        f"linear{{}}_scattered_saved_te_{name}": f"{layout.take('a', 'x')} f=out*tensor y=out -f {layout.free('a')} "
        f"| w(x): {sent}{turned} {layout.take('k', 'x')}; x(w): gx=x",
    }
    return "\n".join(f"{key.format(bias)} | {row}{'; b: gb=b' if bias else ''}" for key, row in rows.items() for bias in ("", "_bias"))


KERNELS = kernels.parse("\n".join(_rows(name, layout) for name, layout in LAYOUTS.items()))

WHOLE = ("head", "router")
"""Products of Megatron-LM itself, which stay in 16 bits."""

VARIANTS = ("linear", "linear_bias", "linear_gathered", "linear_bias_gathered", "linear_scattered", "linear_bias_scattered")
"""Kernels of linear layers: with a bias, with their input gathered or their output scattered along the sequence."""


def problem(plan: Plan) -> str:
    """What of a plan's 8-bit products is not counted."""
    if not plan.transformer_engine or not plan.fused_weight_gradients:
        return "without Transformer Engine's fused weight gradients"
    if plan.architecture.dims["E"] or plan.architecture.dims.get("latent_rope"):
        return "of experts and latent attention, which pad their rows"
    if plan.fp8 == "nvfp4" or (plan.fp8 == "blockwise" and plan.degrees.sequence_parallel):
        return f"of {plan.fp8}, which rotates or turns over what it gathers,"
    return ""


def linears(plan: Plan, whole: Mapping[str, str]) -> Mapping[str, str]:
    """Kernels of linear layers by variant, and by variant and layer; `whole`: those in 16 bits."""
    if not plan.fp8:
        return whole
    name = layout_name(plan)
    out = {variant: f"{variant}_te_{name}" for variant in VARIANTS}
    if plan.fp8 != "delayed":
        out |= {f"{variant}.o": f"{variant}_saved_te_{name}" for variant in VARIANTS if "gathered" not in variant}
    return out | {f"{variant}.{tag}": whole.get(f"{variant}.{tag}", whole[variant]) for variant in VARIANTS for tag in WHOLE}


def weight_copies(plan: Plan, weights: Iterable[Weight]) -> int:
    """8-bit copies of the weights of linear layers in both directions: made in the first micro-batch, then rewritten in place."""
    if not plan.fp8:
        return 0
    layout = LAYOUTS[layout_name(plan)]
    copies = layout.copies - plan.fp8_parameters  # a weight that is 8-bit itself is one of them
    return sum(layout.weight_bytes(w.elements, copies) * w.count for w in weights if in_8_bits(plan, w))


def in_8_bits(plan: Plan, weight: Weight) -> bool:
    """Whether a weight is that of an 8-bit product."""
    matrix = weight.name.startswith("linear.") and weight.shape is not None
    return bool(plan.fp8) and matrix and weight.name.removeprefix("linear.") not in WHOLE
