"""Two small language models, written as transformers' modeling_llama.py and modeling_gpt2.py are, for the tracer's tests."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

LAYERS, HIDDEN, HEADS, KV_HEADS, FFN, WORDS = 3, 128, 8, 2, 320, 1000
BATCH, SEQUENCE = 4, 64


class RmsNorm(nn.Module):  # type: ignore[misc]  # torch is not always installed
    """LlamaRMSNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: Any) -> Any:
        """In float32, operation by operation."""
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype)


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    """apply_rotary_pos_emb of one tensor."""
    half = x.shape[-1] // 2
    return (x * cos) + (torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin)


class LlamaLayer(nn.Module):  # type: ignore[misc]  # torch is not always installed
    """LlamaDecoderLayer with grouped-query attention."""

    def __init__(self) -> None:
        super().__init__()
        width = HIDDEN // HEADS
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.q, self.o = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k, self.v = nn.Linear(HIDDEN, KV_HEADS * width, bias=False), nn.Linear(HIDDEN, KV_HEADS * width, bias=False)
        self.gate, self.up = nn.Linear(HIDDEN, FFN, bias=False), nn.Linear(HIDDEN, FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def attend(self, x: Any, cos: Any, sin: Any) -> Any:
        """LlamaAttention."""
        shape = (*x.shape[:-1], -1, HIDDEN // HEADS)
        query, key, value = (each(x).view(shape).transpose(1, 2) for each in (self.q, self.k, self.v))
        query, key = rotated(query, cos, sin), rotated(key, cos, sin)
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.o(out.transpose(1, 2).contiguous().reshape(*x.shape[:-1], -1).contiguous())

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        """Pre-norm, both parts."""
        residual = x
        x = self.norm1(x)
        x = self.attend(x, cos, sin)
        x = residual + x
        residual = x
        x = self.norm2(x)
        x = self.down(functional.silu(self.gate(x)) * self.up(x))
        return residual + x


class Llama(nn.Module):  # type: ignore[misc]  # torch is not always installed
    """LlamaForCausalLM; returns the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(WORDS, HIDDEN), RmsNorm()
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, ids: Any) -> Any:
        """Rotary tables are made once a pass."""
        x = self.embed(ids)
        width = HIDDEN // HEADS
        cos = torch.empty(1, ids.shape[1], width, dtype=x.dtype, device=ids.device)
        sin = torch.empty(1, ids.shape[1], width, dtype=x.dtype, device=ids.device)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def gelu_new(x: Any) -> Any:
    """NewGELUActivation."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Gpt2Layer(nn.Module):  # type: ignore[misc]  # torch is not always installed
    """GPT2Block without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.o = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, FFN), nn.Linear(FFN, HIDDEN)

    def attend(self, x: Any) -> Any:
        """GPT2Attention."""
        shape = (*x.shape[:-1], HEADS, -1)
        query, key, value = (each.view(shape).transpose(1, 2) for each in self.qkv(x).split(HIDDEN, dim=2))
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.o(out.transpose(1, 2).reshape(*x.shape[:-1], -1))

    def forward(self, x: Any) -> Any:
        """Pre-norm, both parts."""
        residual = x
        x = self.norm1(x)
        attended = self.attend(x)
        x = attended + residual
        residual = x
        x = self.norm2(x)
        x = self.down(gelu_new(self.up(x)))
        return residual + x


class Gpt2(nn.Module):  # type: ignore[misc]  # torch is not always installed
    """GPT2LMHeadModel with tied embeddings; returns the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions, self.norm = nn.Embedding(WORDS, HIDDEN), nn.Embedding(SEQUENCE, HIDDEN), nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(Gpt2Layer() for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Any) -> Any:
        """Learned positions, one row for the batch."""
        x = self.embed(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device).unsqueeze(0))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def causal_loss(model: Any, batch: Any) -> Any:
    """ForCausalLMLoss, with the logits that the model's output keeps."""
    kept = model(batch["ids"])
    logits = kept.float()
    labels = functional.pad(batch["labels"], (0, 1), value=-100)[..., 1:].contiguous()
    return functional.cross_entropy(logits.view(-1, WORDS), labels.view(-1), ignore_index=-100), kept


def a_batch() -> Any:
    """Ids and labels."""
    return {name: torch.zeros(BATCH, SEQUENCE, dtype=torch.long) for name in ("ids", "labels")}


def llama() -> Any:
    """A factory for `peakgate trace`."""
    return Llama(), a_batch(), causal_loss


def gpt2() -> Any:
    """A factory for `peakgate trace`."""
    return Gpt2(), a_batch(), causal_loss


def mlp() -> Any:
    """A factory whose model needs a loss."""
    network = nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
    return network, (torch.zeros(8, 100),)


class Peeking(nn.Linear):  # type: ignore[misc]  # torch is not always installed
    """Asks a tensor for its value, which the meta device does not have."""

    def forward(self, x: Any) -> Any:
        """Branches on a number of the input."""
        return super().forward(x) if x.sum().item() > 0 else x


def peeking() -> Any:
    """A factory of a model that cannot be traced."""
    return Peeking(8, 8), torch.zeros(2, 8)
