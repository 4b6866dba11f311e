"""Tensors that layers share: masks and tables of positions, one of each, or one for each kind of layer.

A checkpointed layer holds what it is handed (torch/utils/checkpoint.py saves the arguments): the mask and the tables of its own kind, which
are freed once the first layer of that kind has gone backward. Source: transformers models/{gemma3,olmo3,gpt_oss}/modeling_*.py,
causal_mask_mapping and position_embeddings by layer type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from peakgate.memory.architecture import Architecture
from peakgate.memory.plan import Plan
from peakgate.memory.tape import Tensor


def by_kind(sizes: Mapping[str, int], arch: Architecture, plan: Plan) -> dict[str, int]:
    """The sizes under names that say whose they are: `mask@local` is that of the kind `local`; without `@` every layer's."""
    if "global" not in arch.pattern:
        return dict(sizes)
    out: dict[str, int] = {}
    for name, size in sizes.items():
        if (name == "mask" and plan.attention == "eager") or (name == "cos" and "tables_by_kind" in arch.flags):
            out |= {f"{name}@local": size // 2, f"{name}@global": size // 2}
        else:
            out[name + "@local" if name == "mask" and not plan.builds_mask else name] = size
    return out


def of_kind(tensors: Mapping[str, Tensor], name: str, kind: str) -> Tensor:
    """The tensor of that name that a layer of this kind reads."""
    own = tensors.get(f"{name}@{kind}")
    return tensors[name] if own is None else own


def held_by(tensors: Mapping[str, Tensor], kinds: Collection[str]) -> list[Tensor]:
    """What layers of these kinds are handed."""
    return [tensor for name, tensor in tensors.items() if name.partition("@")[2] in ("", *kinds)]
