"""What PyTorch itself keeps for the backward pass of a layer, held against the prediction: no formula in between."""

from __future__ import annotations

import pytest
from tests.bench.accuracy import ask, number

SEQUENCE, BATCH, HIDDEN, HEADS = 128, 2, 256, 8


def saved_bytes() -> int:
    """Bytes of distinct storages that autograd saves for one pre-LN GPT layer in bf16 without dropout, parameters left out."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    norm1, norm2 = (nn.LayerNorm(HIDDEN, dtype=torch.bfloat16) for _ in range(2))
    qkv, out = nn.Linear(HIDDEN, 3 * HIDDEN, dtype=torch.bfloat16), nn.Linear(HIDDEN, HIDDEN, dtype=torch.bfloat16)
    up, down = nn.Linear(HIDDEN, 4 * HIDDEN, dtype=torch.bfloat16), nn.Linear(4 * HIDDEN, HIDDEN, dtype=torch.bfloat16)
    weights = {p.untyped_storage().data_ptr() for m in (norm1, norm2, qkv, out, up, down) for p in m.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    def heads(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(BATCH, SEQUENCE, HEADS, -1).transpose(1, 2).reshape(BATCH * HEADS, SEQUENCE, -1)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        x = torch.randn(BATCH, SEQUENCE, HIDDEN, dtype=torch.bfloat16, requires_grad=True) * 1
        q, k, v = map(heads, qkv(norm1(x)).chunk(3, dim=-1))
        mixed = torch.softmax((q @ k.transpose(1, 2)) * (HIDDEN // HEADS) ** -0.5, dim=-1) @ v
        x = x + out(mixed.reshape(BATCH, HEADS, SEQUENCE, -1).transpose(1, 2).reshape(BATCH, SEQUENCE, HIDDEN))
        y = x + down(nn.functional.gelu(up(norm2(x))))
    y.sum().backward()
    return sum(kept.values())


def a_layer_job() -> dict[str, object]:
    """The same layer as a job document."""
    transformer = {"block": "gpt", "layers": 1, "hidden_size": HIDDEN, "heads": HEADS, "ffn_hidden_size": 4 * HIDDEN, "vocab_size": 512}
    return {
        "model": {"transformer": transformer},
        "batch": {"micro_batch_size": BATCH, "sequence_length": SEQUENCE},
        "precision": {"recipe": "bf16"},
        "attention": {"implementation": "eager"},
        "dropout": {"attention": 0.0, "hidden": 0.0},
        "framework": {"name": "textbook"},
    }


@pytest.mark.torch
def test_a_gpt_layer_keeps_what_pytorch_keeps() -> None:
    """The predicted bytes of one layer are those of PyTorch's own saved tensors; LayerNorm's statistics are the difference allowed."""
    (answer,) = ask([a_layer_job()])
    statistics_bytes = 2 * 2 * BATCH * SEQUENCE * 4  # two norms keep a float32 mean and deviation a token
    got, want = number(answer, "model.saved_activation_bytes_per_layer"), saved_bytes()
    assert want - statistics_bytes <= got <= want
