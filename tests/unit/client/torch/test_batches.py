"""Sizes of batches from the shapes of their tensors."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from peakgate.client.torch.batches import NOTHING, Shape, shape_of


def tensor(*shape: int, dtype: str = "torch.int64") -> SimpleNamespace:
    """What is looked at of a tensor."""
    return SimpleNamespace(shape=shape, dtype=dtype)


@pytest.mark.parametrize(
    ("batch", "want"),
    [
        ({"input_ids": tensor(8, 2048), "attention_mask": tensor(8, 2048)}, Shape(8, 2048)),
        ({"inputs_embeds": tensor(4, 100, 512, dtype="torch.bfloat16")}, Shape(4, 100)),
        ({"labels": tensor(4)}, NOTHING),
        (tensor(4, 128), Shape(4, 128)),
        ([tensor(4, 128), tensor(4, 128)], Shape(4, 128)),
        ((tensor(16, 3, 224, 224, dtype="torch.float32"), tensor(16)), Shape(16, 0)),
        (tensor(16, 10, dtype="torch.float32"), Shape(16, 0)),
        ("text", NOTHING),
        ([], NOTHING),
        (None, NOTHING),
    ],
)
def test_sizes_of_a_batch(batch: object, want: Shape) -> None:
    """Tokens where they are surely tokens; an image has none, and what is not understood says nothing."""
    assert shape_of(batch) == want
