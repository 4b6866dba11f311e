"""MODULE:FACTORY -> a model, an example batch and how its loss is computed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from peakgate.client.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is traced, on the meta device. `loss(model, batch)` is a scalar, alone or in front of what the loop keeps beside it."""

    model: Any
    batch: Any
    loss: Callable[[Any, Any], Any]


def subject_of(name: str, dtype: str = "") -> Subject:
    """Calls the factory on the meta device. Raises InputError that says what it must return.

    It returns (model, batch), or (model, batch, loss) with loss(model, batch) a scalar tensor. Without a loss the model is called with the
    batch (a mapping: by name; a tuple: in order) and must return the loss, or an output that has one.
    """
    made = _factory(name)
    with torch.device("meta"):
        parts = made()
    if not isinstance(parts, tuple) or len(parts) not in (2, 3) or not isinstance(parts[0], torch.nn.Module):
        raise InputError(f"{name} must return (model, example batch) or (model, example batch, loss), the model a torch.nn.Module")
    model = parts[0].to("meta", dtype=getattr(torch, dtype) if dtype else None)
    model.train()
    batch = tree_map(lambda leaf: _placed(leaf, dtype), parts[1])
    if not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(batch)):
        raise InputError(f"the batch of {name} holds no tensor")
    return Subject(model=model, batch=batch, loss=parts[2] if len(parts) == 3 else _loss)


def _placed(leaf: Any, dtype: str) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.to("meta", dtype=getattr(torch, dtype) if dtype and leaf.is_floating_point() else None)


def _factory(name: str) -> Callable[[], Any]:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InputError(f"{name!r} is not MODULE:FACTORY, for example train:make_model")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise InputError(f"cannot import {module}: {error}") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise InputError(f"{module} has no function {attribute}")
    return found  # type: ignore[no-any-return] # checked to be callable


def _loss(model: Any, batch: Any) -> tuple[Any, Any]:
    """(loss, output): a plain loop still names the output while the loss is differentiated."""
    output = _called(model, batch)
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", output)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise InputError("the model returns no loss: let the factory return (model, batch, loss) with loss(model, batch) a scalar")
    return loss, output


def _called(model: Any, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)
