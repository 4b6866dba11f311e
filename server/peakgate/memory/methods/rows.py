"""The methods, one row each.

Sources: TRL 1.0 trainer/{dpo,reward,grpo}_trainer.py, experimental/{kto,orpo,gkd,ppo}/*_trainer.py and their configs. Defaults of a method
(its reference model, its sequences an example) are rows of `defaults.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How one method trains."""

    loss: str = ""
    """Its own loss (a key of `loss.LOSSES`); empty: that of the language model."""
    scores: bool = False
    """The model ends in one number a token instead of logits (transformers modeling_layers.py: GenericForSequenceClassification)."""
    drops_out: bool = True
    """Whether the trainer leaves dropout on (`disable_dropout`)."""
    caches: bool = False
    """Frozen models run with a cache of keys and values: the trainer does not pass `use_cache=False`."""
    tiles: bool = False
    """Its trainer can do without whole logits (TRL 1.16)."""
    models: tuple[str, ...] = ()
    """Other models that must be stated."""
    rolls_out: bool = False
    """Sequences are generated during training."""


PLAIN = ("pretrain", "sft")
"""Methods that train one model on its next token."""

METHODS: dict[str, Method] = {
    "pretrain": Method(),
    "sft": Method(),
    "dpo": Method(loss="dpo", drops_out=False, tiles=True),
    "kto": Method(loss="kto", drops_out=False, caches=True, tiles=True),
    "orpo": Method(loss="orpo", drops_out=False),
    "reward": Method(loss="reward", scores=True, drops_out=False),
    "grpo": Method(loss="grpo", rolls_out=True, tiles=True),
    "ppo": Method(loss="ppo", drops_out=False, models=("critic", "reward"), rolls_out=True),
    "distill": Method(loss="distill", drops_out=False, caches=True, models=("teacher",)),
}

OWN_LOSSES = frozenset({"tiled", *(row.loss for row in METHODS.values() if row.loss)})
"""Losses of methods, whole and by tiles."""
