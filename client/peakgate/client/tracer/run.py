"""From a factory's name to the text of a profile."""

from __future__ import annotations

import json
from collections.abc import Callable
from traceback import extract_tb
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peakgate.client.errors import InputError
from peakgate.client.tracer.factory import Subject, subject_of
from peakgate.client.tracer.profile import document
from peakgate.client.tracer.step import trace


def profile_of(name: str, *, dtype: str, optimizer: str, implementation: str, accumulation: int, seen: Callable[[int], None]) -> str:
    """Traces MODULE:FACTORY; raises InputError, which also names the line of a model that fails on the meta device."""
    try:
        subject = subject_of(name, dtype)
        profile = traced(subject, optimizer=optimizer, implementation=implementation, accumulation=accumulation, seen=seen)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # what a stranger's model may raise
        raise InputError(f"{name} fails on the meta device{_where(error)}: {type(error).__name__}: {error}") from error
    return json.dumps({"factory": name} | profile)


def _where(error: BaseException) -> str:
    """The last line outside PyTorch and this package."""
    own = ("/torch/", "/peakgate/client/")
    frames = [frame for frame in extract_tb(error.__traceback__) if not any(part in frame.filename for part in own)]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def traced(
    subject: Subject,
    *,
    optimizer: str = "adamw",
    implementation: str = "foreach",
    accumulation: int = 1,
    seen: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """The profile of a subject as data."""
    step = trace(subject, optimizer=optimizer, implementation=implementation, accumulation=accumulation, seen=seen)
    facts = {
        "torch": str(torch.__version__),
        "dtype": str(next(subject.model.parameters()).dtype).removeprefix("torch."),
        "batch_size": next(leaf.shape[0] if leaf.ndim else 1 for leaf in tree_leaves(subject.batch) if isinstance(leaf, torch.Tensor)),
        "optimizer": {"name": optimizer, "implementation": implementation},
        "gradient_accumulation_steps": accumulation,
        "parameters": sum(p.numel() for p in subject.model.parameters()),
        "trainable_parameters": sum(p.numel() for p in subject.model.parameters() if p.requires_grad),
        "gradient_bytes": sum(p.nbytes for p in subject.model.parameters() if p.requires_grad),
        "saved_bytes": step.saved_bytes,
        "phase_live_bytes": step.phases,
    }
    return document(facts, step.resident, step.entries)
