"""Two training steps under the tracker: the second one is the steady state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peakgate.client.errors import InputError
from peakgate.client.tracer.cuda_like import cuda_like
from peakgate.client.tracer.entries import Allocation, Entry
from peakgate.client.tracer.factory import Subject
from peakgate.client.tracer.tracker import Tracker, address_of

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adamw": ("AdamW", {}),
    "adam": ("Adam", {}),
    "sgd": ("SGD", {}),
    "sgd-momentum": ("SGD", {"momentum": 0.9}),
    "adafactor": ("Adafactor", {}),
}
"""Names of the job document -> torch.optim."""

IMPLEMENTATIONS = ("foreach", "fused", "for-loop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A recorded step: what was alive at its start, and every allocation and free after it."""

    resident: list[Allocation]
    entries: list[Entry]
    phases: dict[str, int]
    saved_bytes: int


class _Saved:
    """Counts the storages that autograd keeps before the loss, each once."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker, self.numbers, self.total = tracker, set[int](), 0

    def pack(self, tensor: Any) -> Any:
        known = self.tracker.alive.get(address_of(tensor.untyped_storage())) if tensor.layout == torch.strided else None
        if known is not None and known[1].category in ("temporaries", "activations"):
            self.tracker.become(tensor, "activations")
            if known[1].number not in self.numbers and self.tracker.phase == "forward":
                self.numbers.add(known[1].number)
                self.total += known[1].nbytes
        return tensor


def trace(subject: Subject, *, optimizer: str, implementation: str, accumulation: int, seen: Callable[[int], None]) -> Traced:
    """Traces a step; `seen(step)` is called once an operation. Raises InputError for an optimizer that this PyTorch lacks."""
    step = 0
    tracker = Tracker(lambda: seen(step))
    stepper = _Stepper(subject, tracker, _optimizer(subject, optimizer, implementation), fused=implementation == "fused")
    with cuda_like(), tracker:
        for name, tree in (("parameters", list(subject.model.parameters())), ("buffers", list(subject.model.buffers()))):
            tracker.follow(tree, name)
        tracker.follow(subject.batch, "inputs")
        stepper.step(accumulation)
        step = 1
        resident, saved = stepper.step(accumulation)
        return Traced(resident=resident, entries=list(tracker.log), phases=dict(tracker.highest), saved_bytes=saved)


class _Stepper:
    """Forward, backward and the optimizer, with their phases."""

    def __init__(self, subject: Subject, tracker: Tracker, optimizer: Any, *, fused: bool) -> None:
        self.subject, self.tracker, self.optimizer, self.fused = subject, tracker, optimizer, fused
        for parameter in subject.model.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(lambda p: tracker.become(p.grad, "gradients"))

    def step(self, accumulation: int) -> tuple[list[Allocation], int]:
        """Two micro-steps stand for any number above one; returns what is alive before the last, and what autograd keeps in it."""
        if accumulation > 1:
            self._micro_step()
        start = self.tracker.begin()
        kept, saved = self._micro_step()
        self.tracker.enter("optimizer")
        del kept
        self._update()
        return start, saved

    def _micro_step(self) -> tuple[Any, int]:
        """Forward and backward: the loss with what the loop keeps beside it, and the bytes that autograd kept in between."""
        saved = _Saved(self.tracker)
        self.tracker.enter("forward")
        with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda tensor: tensor):
            result = self.subject.loss(self.subject.model, self.subject.batch)
        self.tracker.enter("backward")
        (result[0] if isinstance(result, tuple) else result).backward()
        return result, saved.total

    def _update(self) -> None:
        """The optimizer's step; a fused one makes its states and nothing else."""
        if self.fused:
            with self.tracker.untracked():
                self.optimizer.step()
        else:
            self.optimizer.step()
        states = [leaf for state in self.optimizer.state.values() for leaf in tree_leaves(state)]
        self.tracker.follow(states, "optimizer_states")
        self.tracker.become(states, "optimizer_states")
        self.optimizer.zero_grad(set_to_none=True)


def _optimizer(subject: Subject, name: str, implementation: str) -> Any:
    kind, settings = OPTIMIZERS[name]
    trained = [parameter for parameter in subject.model.parameters() if parameter.requires_grad]
    if not trained:
        raise InputError("the model has no parameter that is trained")
    if not hasattr(torch.optim, kind):
        raise InputError(f"PyTorch {torch.__version__} has no torch.optim.{kind}")
    return getattr(torch.optim, kind)(trained, lr=1e-3, foreach=implementation == "foreach", **settings)
