"""Follows every storage of a step from the operation that makes it to the moment it dies."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from peakgate.client.tracer.entries import Allocation, Entry, Freed, Phase

LOSS_OPERATIONS = frozenset(
    {
        "_log_softmax",
        "nll_loss_forward",
        "nll_loss2d_forward",
        "mse_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "smooth_l1_loss",
        "huber_loss",
    }
)
"""The first of these in a forward pass begins the loss."""


class Tracker(TorchDispatchMode):  # type: ignore[misc]  # torch is not always installed
    """Live bytes are those of all storages on the meta device; `seen` is called once an operation."""

    def __init__(self, seen: Callable[[], None]) -> None:
        super().__init__()
        self.seen = seen
        self.alive: dict[int, tuple[Any, Allocation]] = {}
        self.log: list[Entry] = []
        self.count = self.live_bytes = 0
        self.phase = ""
        self.highest: dict[str, int] = {}
        self.quiet = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operation and follows what it returns."""
        name = func.overloadpacket.__name__
        if self.phase == "forward" and name in LOSS_OPERATIONS:
            self.enter("loss")
        out = args[0].add_(args[1]) if name == "add" and _sums_in_place(args) else func(*args, **(kwargs or {}))
        if not self.quiet:
            self.follow(out, "temporaries")
        self.seen()
        return out

    def follow(self, tree: object, category: str) -> None:
        """Counts the storages of a tree of tensors that are not known yet."""
        for storage in storages_of(tree):
            key = address_of(storage)
            if key not in self.alive:
                self.count += 1
                made = Allocation(self.count, storage.nbytes(), category)
                self.alive[key] = weakref.ref(storage, self._dies(key, made)), made
                self.live_bytes += made.nbytes
                self.log.append(made)
                self.highest[self.phase] = max(self.highest.get(self.phase, 0), self.live_bytes)

    def become(self, tensor: object, category: str) -> None:
        """Says what an allocation is."""
        for storage in storages_of(tensor):
            known = self.alive.get(address_of(storage))
            if known is not None and known[1].category in ("temporaries", "activations"):
                known[1].category = category

    def _dies(self, key: int, made: Allocation) -> Callable[[object], None]:
        def died(_: object) -> None:
            self.alive.pop(key, None)
            self.live_bytes -= made.nbytes
            self.log.append(Freed(made.number))

        return died

    def enter(self, phase: str) -> None:
        """Begins a phase."""
        self.phase = phase
        self.highest[phase] = max(self.highest.get(phase, 0), self.live_bytes)
        self.log.append(Phase(phase))

    def begin(self) -> list[Allocation]:
        """Forgets what was seen so far; returns what is alive now."""
        self.log, self.highest = [], {}
        return sorted((made for _, made in self.alive.values()), key=lambda made: made.number)

    @contextmanager
    def untracked(self) -> Iterator[None]:
        """What is made inside and dies inside is not counted."""
        self.quiet = True
        try:
            yield
        finally:
            self.quiet = False


def _sums_in_place(args: Any) -> bool:
    """Whether autograd adds two gradients of one tensor in place, which it leaves off under a tracker like this one.

    torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace: nobody else holds the first one. The sum runs between a node and the next,
    without a graph; the second count of its storage is the one that asks here.
    """
    engine = torch._C  # noqa: SLF001 - the engine has no public face
    if torch.is_grad_enabled() or len(args) != 2 or engine._current_autograd_node() is None:  # noqa: SLF001 - the same
        return False
    if not all(isinstance(each, torch.Tensor) and each.device.type == "meta" for each in args) or args[0].shape != args[1].shape:
        return False
    holders = engine._storage_Use_Count(address_of(args[0].untyped_storage()))  # noqa: SLF001 - the same
    return bool(holders <= 2 and args[0].dtype == args[1].dtype)


def address_of(storage: Any) -> int:
    """What tells one storage from another while both live."""
    return int(storage._cdata)  # noqa: SLF001 - meta storages have no data pointer


def storages_of(tree: object) -> Iterable[Any]:
    """Storages of the meta tensors in a tree."""
    for leaf in tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and leaf.device.type == "meta" and leaf.layout == torch.strided:
            yield leaf.untyped_storage()
