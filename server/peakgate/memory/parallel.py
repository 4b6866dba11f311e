"""What each degree of parallelism divides on one rank.

Tensor parallelism splits heads, the feed-forward width and the vocabulary; sequence parallelism splits the tokens of everything
outside those parts (Korthikanti et al. 2022, section 4.2); context parallelism splits the tokens of all of it; expert parallelism splits
the experts. Dimensions are those of `architecture.py`; T: tokens of a rank, Ts: tokens outside tensor-parallel parts.
"""

from __future__ import annotations

from peakgate.memory.context_parallel import context_dims
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.plan import FSDP, Plan
from peakgate.memory.routed import SPLIT_BY_TENSOR as ROUTED
from peakgate.memory.routed import routed_dims
from peakgate.memory.runtime import MULTIPROCESSORS

TILE_TOKENS, TILE_WORDS = 4096, 32768
"""TRL 1.16 kernels/chunked_logprob.py: TOKEN_CHUNK_SIZE; trainer/utils.py: _CHUNKED_LOGPROB_CHUNK_SIZE."""

SPLIT_PARTS = ("rotary_kv", "unrotated_kv", "fd", "fs", "ropes", "nopes", "values", "kvb")
"""Parts of heads, and the widths of dense layers and shared experts."""

SPLIT_BY_TENSOR = ("q", "kv", "a", "n", "f", "V", "qkv", "kv2", "f2", "kf2", "rotary", "unrotated", *SPLIT_PARTS, *ROUTED)


def divided(size: int, degree: int) -> int:
    """A share of `size`, rounded up: frameworks pad what does not divide (Megatron-LM pads the vocabulary)."""
    return -(-size // degree)


def rank_dims(plan: Plan) -> dict[str, int]:
    """Sizes on one rank, in elements; formats in bytes of an element."""
    degrees, arch = plan.degrees, plan.architecture
    dims = dict(arch.dims)
    if plan.vocabulary_multiple:
        dims["V"] = divided(dims["V"], plan.vocabulary_multiple * degrees.tensor) * plan.vocabulary_multiple * degrees.tensor
    for name in SPLIT_BY_TENSOR:
        if dims.get(name):
            dims[name] = divided(dims[name], degrees.tensor)
    if arch.dims["n"] < degrees.tensor:  # a key-value head is not split: every rank of its group holds it
        dims["n"], dims["kv"] = 1, arch.dims["d"]
        dims["qkv"] = dims["q"] + 2 * dims["kv"]
    dims["E"] = divided(dims["E"], degrees.expert) if dims["E"] else 0
    tokens = divided(plan.micro_batch * plan.sequence, degrees.context)
    outside = divided(tokens, degrees.tensor) if degrees.sequence_parallel else tokens
    rows32 = -(-plan.sequence // 32) * 32  # the efficient kernel pads its rows (research of the aten meta kernel: ceil to 32)
    lora = plan.lora
    dims |= routed_dims(degrees, dims, tokens, outside)
    return dims | {
        "T": tokens,
        "Ts": outside,
        "b": plan.micro_batch,
        "tensor": degrees.tensor,
        "one": 1,
        "nothing": 0,
        "rope_rows": tokens * dims["d"],
        "four": 4,
        **context_dims(degrees, tokens),
        "rng": 24,
        "act": ITEMSIZE[plan.formats.parameters if plan.formats.autocast else plan.formats.compute],
        "weight": weight_itemsize(plan),
        "product": ITEMSIZE[plan.formats.compute],
        "adapter": ITEMSIZE[lora.adapter_dtype] if lora else 4,
        "ranks": lora.rank * len(_merged(plan)) if lora else 0,
        "adapted": sum(dims[_WIDTH[part]] for part in _merged(plan)),
        "rank": lora.rank if lora else 0,
        "lse": dims["a"] * tokens,
        "lse32": dims["a"] * divided(plan.micro_batch * rows32, degrees.context),
        "scores": dims["a"] * plan.sequence,
        "scores_and_sink": dims["a"] * (plan.sequence + 1),
        "positions": arch.positions,
        "multiprocessors": MULTIPROCESSORS.get(plan.capability or (0, 0), max(MULTIPROCESSORS.values())),
        **({"tile": min(plan.micro_batch * answer_tokens(plan), TILE_TOKENS) * TILE_WORDS} if plan.loss == "tiled" else {}),
        **(_loss_chunk(tokens, dims["h"], dims["V"]) if plan.loss == "fused" else {}),
    }


def answer_tokens(plan: Plan) -> int:
    """Tokens of a sequence that a method's loss reads: each but the first may be one of the answer."""
    return max(1, min(plan.completion or plan.sequence, plan.sequence - 1))


_WIDTH = {"q": "q", "k": "kv", "v": "kv"}


def _merged(plan: Plan) -> list[str]:
    """The adapted parts of a joined matrix of queries, keys and values, where a framework adapts them one by one."""
    return [part for part in _WIDTH if plan.lora and part in plan.lora.targets]


def _loss_chunk(tokens: int, hidden: int, vocabulary: int) -> dict[str, int]:
    """Elements of one chunk of a fused loss: its logits, those of the chunk before, its hidden states.

    Liger ops/fused_linear_cross_entropy.py: as many rows as make the logits about as large as the input, a power of two.
    """
    rows = 1 << (divided(tokens, divided(vocabulary, hidden)) - 1).bit_length()
    own = min(rows, tokens)
    return {"chunk": own * vocabulary, "chunk_before": own * vocabulary if rows < tokens else 0, "chunk_hidden": own * hidden}


def weight_itemsize(plan: Plan) -> int:
    """Bytes of a weight as kernels see it: gathered shards are in the compute format."""
    sharded = plan.degrees.sharding in FSDP and not plan.formats.autocast
    return ITEMSIZE[plan.formats.compute if sharded else plan.formats.parameters]
