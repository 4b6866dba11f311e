"""What a micro-batch brings along: ids and labels, pictures, sound; and the buffers that a model registers."""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.memory.lengths import patches
from peakgate.memory.plain import run as plain_network
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.roles import padded

INT64 = 8


def input_bytes(plan: Plan, dims: Mapping[str, int]) -> int:
    """Bytes that live from before the step to after it, beside the model's states; `dims` are those of the last stack."""
    if plan.architecture.network:
        return plain_network.input_bytes(plan, plan.architecture.network)
    kind = plan.architecture.traits.get("inputs", "tokens")
    own = {"tokens": _tokens, "pairs": _pairs, "images": _images, "sound": _sound, "pictures": _pictures}[kind](plan, dims)
    return own + _padding(plan) + _buffers(plan, dims)


def _tokens(_: Plan, dims: Mapping[str, int]) -> int:
    return 2 * INT64 * dims["T"]


def _pairs(plan: Plan, dims: Mapping[str, int]) -> int:
    """Ids of the source, labels of the target (shifted inside the model)."""
    return INT64 * (plan.micro_batch * plan.sequence + dims["T"])


def _images(plan: Plan, dims: Mapping[str, int]) -> int:
    return plan.micro_batch * (dims["channels"] * plan.image**2 * dims["act"] + INT64)


def _pictures(plan: Plan, dims: Mapping[str, int]) -> int:
    """A picture and its text, and a row of positions for each tower (models/clip/modeling_clip.py: position_ids)."""
    rows = plan.architecture.positions + patches(plan.image, plan.patch)
    return plan.micro_batch * dims["channels"] * plan.image**2 * dims["act"] + INT64 * (dims["T"] + rows)


def _sound(plan: Plan, dims: Mapping[str, int]) -> int:
    """Two frames of mel bins a position of the encoder (models/whisper/modeling_whisper.py: strides of one and two)."""
    return plan.micro_batch * dims["mel"] * 2 * plan.sequence * dims["act"] + INT64 * dims["T"]


def _padding(plan: Plan) -> int:
    """The attention mask of an encoder's tokens."""
    return INT64 * plan.micro_batch * plan.sequence if padded(plan) else 0


def _buffers(plan: Plan, dims: Mapping[str, int]) -> int:
    traits = plan.architecture.traits
    positions = 2 * INT64 * plan.architecture.positions if dims.get("types") else 0  # BertEmbeddings: position and token type ids
    bias = dims["V"] * dims["act"] if traits.get("logits_bias") == "buffer" else 0  # BART: final_logits_bias
    return _rotary(plan) + positions + bias


def _rotary(plan: Plan) -> int:
    """The inverse frequencies, or torchtitan's whole complex table (models/llama3/model/model.py: precompute_freqs_cis)."""
    if profile_of(plan.profile).resident_rope:
        return 4 * plan.sequence * plan.architecture.dims["rope"]
    return plan.architecture.buffer_bytes
