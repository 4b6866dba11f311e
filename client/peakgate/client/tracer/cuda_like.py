"""Makes the meta device keep what CUDA keeps: fused dropout with a one-byte mask, and the norms and attention kernels that CUDA picks.

Sources: aten native/Dropout.cpp (is_fused_kernel_acceptable); aten cuda/sdp_utils.cpp (flash: 16 bits, no mask, heads of at most 256;
otherwise the memory-efficient kernel); transformers masking_utils.py (find_packed_sequence_indices asks a tensor for its values).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.nn import functional

HALVES = (torch.bfloat16, torch.float16)
LARGEST_HEAD = 256


@contextmanager
def cuda_like() -> Iterator[None]:
    """Replaces dropout and attention while a model is traced."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(functional, "dropout", _dropout))
        stack.enter_context(patch.object(functional, "scaled_dot_product_attention", _attention))
        if hasattr(torch.ops.aten, "_fused_rms_norm"):
            stack.enter_context(patch.object(functional, "rms_norm", _rms_norm))
        masking = sys.modules.get("transformers.masking_utils")
        if hasattr(masking, "find_packed_sequence_indices"):
            stack.enter_context(patch.object(masking, "find_packed_sequence_indices", lambda *_, **__: None))
        yield


def _dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:  # noqa: ARG001, FBT001, FBT002 - torch's signature
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


class _FusedRmsNorm(torch.autograd.Function):  # type: ignore[misc]  # torch is not always installed
    """One kernel on CUDA that keeps its input and one number a row (tools/autograd/derivatives.yaml: _fused_rms_norm)."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, rows: int) -> Any:
        """An output as large as the input."""
        ctx.save_for_backward(x, weight, torch.empty(rows, dtype=torch.float32, device=x.device))
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Both gradients at once."""
        del grad
        x, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), None if weight is None else torch.empty_like(weight), None


def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:  # noqa: ARG001 - torch's signature
    return _FusedRmsNorm.apply(x, weight, x.numel() // math.prod(normalized_shape))


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - torch's signature
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: FBT001, FBT002 - torch's signature
) -> Any:
    width = query.shape[-1]
    scale = width**-0.5 if scale is None else scale
    if attn_mask is None and query.dtype in HALVES and value.shape[-1] == width and width <= LARGEST_HEAD:
        return _flash(query, key, value, dropout_p, is_causal, scale)
    if enable_gqa:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    attend = torch.ops.aten._scaled_dot_product_efficient_attention  # noqa: SLF001 - the kernel itself, which has no public name
    return attend(query, key, value, bias, True, dropout_p, is_causal, scale=scale)[0]


def _flash(query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, scale: float) -> Any:  # noqa: FBT001 - one of torch's arguments
    """Heads are padded to a multiple of 8 (aten transformers/attention.cpp: pad_last_dim)."""
    width = query.shape[-1]
    padding = -width % 8
    if padding:
        query, key, value = (functional.pad(each, (0, padding)) for each in (query, key, value))
    attend = torch.ops.aten._scaled_dot_product_flash_attention  # noqa: SLF001 - the kernel itself, which has no public name
    out = attend(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    return out[..., :width] if padding else out


def _bias(mask: Any, query: Any, key: Any) -> Any:
    """A boolean mask becomes an additive one for each layer."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
