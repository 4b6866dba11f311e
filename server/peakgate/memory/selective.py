"""Per-operation checkpointing: outputs that the forward pass keeps, and that a second run takes back instead of making them again.

torchtitan's list (torchtitan/models/llama3/infra/parallelize.py, _save_list, and distributed/activation_checkpoint.py, its custom policy):
attention, reduce-scatters, and every second `aten.mm` counted from the first. A linear layer with a bias is an `aten.addmm` and is not
on the list.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.memory.storage import Storage

LISTED = ("flash", "efficient", "reduce_scatter")
PRODUCTS = frozenset({"linear", "linear_gathered", "linear_scattered"})

Cache = list[list[Storage]]
"""The kept outputs of a stretch, one list an operation, in the order of the forward pass."""


@dataclass(slots=True)
class Outputs:
    """Those of one operation: taken back from a second run's cache, or kept for it."""

    taken: list[Storage] = field(default_factory=list)
    kept: list[Storage] | None = None

    def take(self) -> Storage | None:
        """The output that was kept; its hold goes to the caller."""
        return self.taken.pop(0) if self.taken else None

    def keep(self, storage: Storage) -> None:
        """Holds an output for the second run."""
        if self.kept is not None:
            storage.become("activations")
            self.kept.append(storage.hold())


NOTHING = Outputs()


@dataclass(slots=True)
class Operations:
    """What the running stretch keeps or takes back; neither outside of one."""

    keeping: Cache | None = None
    taking: Cache | None = None
    products: int = 0

    def start(self, *, keeping: Cache | None = None, taking: Cache | None = None) -> None:
        """Begins a stretch, or ends one."""
        self.keeping, self.taking, self.products = keeping, taking, 0

    def begin(self, kernel: str) -> Outputs:
        """An operation runs."""
        if (self.keeping is None and self.taking is None) or not self._listed(kernel):
            return NOTHING
        if self.keeping is not None:
            self.keeping.append([])
            return Outputs(kept=self.keeping[-1])
        return Outputs(taken=self.taking.pop(0) if self.taking else [])

    def _listed(self, kernel: str) -> bool:
        if kernel in PRODUCTS:
            self.products += 1
            return self.products % 2 == 1
        return kernel.startswith(LISTED)
