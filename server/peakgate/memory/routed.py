"""Sizes of routed layers and of multi-head latent attention, whole and on one rank.

Symbols: `routed` rows that a rank's experts get; `latent_*` widths over all heads; `f_dense` of the first, unrouted layers. Sources:
DeepSeek-V2, arXiv 2405.04434, section 2.1; Megatron-LM megatron/core/parallel_state.py (expert tensor and data degrees).
"""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.memory.job import Transformer
from peakgate.memory.plan import Degrees

ALIGNMENT = 8
"""Rows to which torchtitan pads the group of each expert (distributed/expert_parallel.py: TOKEN_GROUP_ALIGN_SIZE_M)."""

BALANCED = 1000
"""Thousandths of the rows of balanced routing."""

SPLIT_BY_TENSOR = ("f_shared", "f_shared2", "f_dense", "f_dense2", "latent_q", "latent_kv", "latent_v")


def routed_sizes(t: Transformer) -> dict[str, int]:
    """The sizes of a model that blocks name, beside those of `model.py`; 0 where the model has none."""
    expert, dense = t.expert_ffn_hidden_size or t.ffn_hidden_size or 0, t.ffn_hidden_size or 0
    shared = (t.shared_experts or 0) * expert
    feed_forward = {"f_expert": expert, "f_shared": shared, "f_dense": dense}
    doubled = {name + "2": 2 * size for name, size in feed_forward.items()}
    return feed_forward | doubled | {"E_all": t.experts or 0} | latent_sizes(t)


def latent_sizes(t: Transformer) -> dict[str, int]:
    """Widths of latent attention."""
    if t.mla is None:
        return {}
    a, rope, nope, value = t.heads or 0, t.mla.qk_rope_head_dim or 0, t.mla.qk_nope_head_dim or 0, t.mla.v_head_dim or 0
    rank = t.mla.kv_lora_rank or 0
    low = {"q_rank": t.mla.q_lora_rank or 0, "kv_rank": rank, "kv_rank_rope": rank + rope, "latent_rope": rope}
    return low | {"latent_q": a * (nope + rope), "latent_kv": a * (nope + value), "latent_v": a * value}


def expert_tensor(degrees: Degrees) -> int:
    """By how much tensor parallelism splits an expert: as all else, unless the ranks do not reach (then experts stay whole)."""
    if degrees.whole_experts:
        return 1
    return degrees.tensor if degrees.world % (degrees.tensor * degrees.expert * degrees.pipeline) == 0 else 1


def expert_shard(degrees: Degrees) -> int:
    """Ranks that hold the same experts and share their states; of hybrid sharding those of one copy of the model."""
    if degrees.whole_experts:
        return max(1, degrees.shard * degrees.tensor // degrees.expert)
    return max(1, degrees.world // (expert_tensor(degrees) * degrees.expert * degrees.pipeline))


def routed_dims(degrees: Degrees, dims: Mapping[str, int], tokens: int, outside: int) -> dict[str, int]:
    """Sizes on one rank: every expert gets the same number of rows, rounded up, times what the job states of the fullest rank.

    A rank that holds all experts gets all rows, however they fall.
    """
    if not dims.get("E_all"):
        return {}
    split = expert_tensor(degrees)
    every, own = dims["E_all"], outside if split == 1 else tokens
    routed = -(-own * dims["k"] // every) * every
    if degrees.expert > 1 and degrees.imbalance_permille != BALANCED:
        routed = -(-routed * degrees.imbalance_permille // BALANCED)
    return {
        "f_expert": -(-dims["f_expert"] // split),
        "f_expert2": -(-dims["f_expert2"] // split),
        "routed": routed,
        "aligned": routed + ALIGNMENT * dims["E"],
        "row_map": outside * (2 * every + 1),  # transformer_engine/pytorch/triton/permutation.py: int32
    }
