"""Bytes of number formats (seed B, table 19.1.2; quantised formats: bitsandbytes functional.py)."""

from __future__ import annotations

ITEMSIZE: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1, "none": 0}
"""Bytes of one element, for formats of at least a byte."""

QUANTISED = ("int8", "int4", "nf4")
"""Formats of a frozen base whose weights are made whole again for each product."""

BLOCK_4BIT = 64
"""Elements that share one scale (bitsandbytes functional.py: quantize_4bit, blocksize=64)."""

BLOCK_SCALES = 256
"""Scales that share one scale under double quantisation (the same: quantize_blockwise of absmax, blocksize=256)."""


def stored_bytes(elements: int, dtype: str, *, double_quant: bool = False) -> int:
    """Bytes that `elements` weights take in `dtype`, with the scales of a quantised format.

    4 bit: half a byte each and one fp32 scale per 64 (QLoRA, arXiv 2305.14314, section 3); double quantisation keeps the
    scales in one byte and one fp32 scale per 256 of them. int8: one fp32 scale per row is left out (below 0.1 %).
    """
    if dtype not in ("int4", "nf4"):
        return elements * ITEMSIZE[dtype]
    scales = -(-elements // BLOCK_4BIT)
    scale_bytes = scales + 4 * -(-scales // BLOCK_SCALES) if double_quant else 4 * scales
    return -(-elements // 2) + scale_bytes
