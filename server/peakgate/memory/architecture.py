"""What a model is made of: a family's roles and biases, and its dimensions.

Symbols (Korthikanti et al. 2022, and the sketches of Megatron-LM): h hidden size, a query heads, n key-value heads, d width of
a head, q = a·d, kv = n·d, f inner width of the feed-forward part, L layers, V vocabulary, E experts, k experts a token visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.memory.plain.network import Network

Roles = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A row of the table of families. `roles` name the blocks; `eager/core` is a role of one attention implementation, `dense/mlp` of
    one kind of layer."""

    roles: Roles
    biases: frozenset[str] = frozenset()
    tied: bool = False
    positions: str = "rotary"
    """rotary, table (rotary, from a stored table), alibi, learned, or offset (a learned table with two more rows: OPT)."""
    pattern: tuple[str, ...] = ("every",)
    latent: bool = False
    """Multi-head latent attention, whose first `dense_layers` are of the kind `dense`."""
    qkv_only: bool = False
    """Its `attention_bias` leaves the output matrix alone."""
    flags: frozenset[str] = frozenset()
    windowed: bool = False
    rope_tables: float = 1
    masks: int = 1
    rotary_share: float = 1.0
    max_positions: int = 1024
    """Rows of a learned position table when nothing is said (the family's configuration_*.py)."""
    encoder: tuple[str, ...] = ()
    """Kinds of the layers of an encoder in front of the decoder; a family of one stack has none."""
    decoder: Roles = field(default_factory=dict)
    """Roles that are others in the decoder of two stacks."""
    heads: Mapping[str, Roles] = field(default_factory=dict)
    """Roles of heads other than the family's own, by `model.transformer.head`."""
    traits: Mapping[str, str] = field(default_factory=dict)
    """What is no block: `objective` (causal, plain), `inputs` (tokens, pairs, images, sound), `position_ids` (row, token, buffer, none),
    `logits_bias`; with a prefix of the layers' kind where the stacks differ (`decoder.position_ids`)."""
    frozen: frozenset[str] = frozenset()
    """Weights that the model itself never trains."""
    implementations: tuple[str, ...] = ("eager", "sdpa", "flash")
    """Attention that the model's class has (transformers: `_supports_sdpa`, `_supports_flash_attn`); another one falls back to eager."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Architecture:
    """A family with its sizes, in elements. Compared by identity: `model.describe` makes one object for equal descriptions."""

    block: str
    roles: Roles
    dims: Mapping[str, int]
    pattern: tuple[str, ...]
    tied: bool
    leading: int = 0
    """Layers in front of the pattern, of the kind `dense` (the first layers of DeepSeek's models are not routed)."""
    implementations: tuple[str, ...] = ("eager", "sdpa", "flash")
    biases: frozenset[str] = frozenset()
    positions: int = 0
    buffer_bytes: int = 0
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    stand_in: str = ""
    """Why another family's kernels are counted; empty when the family is its own."""
    flags: frozenset[str] = field(default=frozenset())
    network: Network | None = None
    """A plain network, which has no blocks, roles or layers of its own."""
    encoder: tuple[str, ...] = ()
    decoder: Roles = field(default_factory=dict)
    traits: Mapping[str, str] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
