"""Names of attention kernels in Hugging Face's modules and its trainers, and what each keeps for the backward pass.

Sources: transformers modeling_utils.py, AttentionInterface (names behind `attn_implementation`, `kernels-community/…` from the hub);
xformers and flex attention keep what flash attention keeps: queries, keys, values, the output and one number a row.
"""

from __future__ import annotations

from peakgate.readers.place import Stated

WORDS = {
    "eager": "eager",
    "disabled": "eager",
    "none": "eager",
    "sdpa": "sdpa",
    "sdp": "sdpa",
    "torch": "sdpa",
    "xformers": "flash",
    "flex_attention": "flash",
    "flex": "flash",
    "sage": "flash",
    "fa2": "flash",
    "fa3": "flash",
    "fa4": "flash",
    "flash": "flash",
    "flash_attn": "flash",
}


def attention(stated: Stated) -> str | None:
    """The implementation; None where it is left to the model. Raises ValueError."""
    word = stated.text.strip().lower().replace("-", "_")
    if word in ("auto", ""):
        return None
    if word in WORDS:
        return WORDS[word]
    if "flash_attn" in word or "flash_attention" in word or "sage_attention" in word:
        return "flash"
    raise ValueError("is no attention implementation that is known")
