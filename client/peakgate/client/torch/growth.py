"""Which phase of the step the peaks grew in, without touching the allocator's own record of them."""

from __future__ import annotations

from peakgate.client.torch.allocator import Figures
from peakgate.v1.allocator_report import PhaseReport

NOTHING = Figures(0, 0, 0, 0)


class Growth:
    """Readings in, peaks by phase out. A peak that did not grow in a phase says nothing of that phase but that it stayed below.

    `before`: what the process had already reached before this training, which is not this training's.
    """

    def __init__(self, *, before: Figures = NOTHING) -> None:
        self._before = before
        self._highest = before
        self._last = before
        self._phases: dict[str, tuple[int, int]] = {}
        self.version = 0
        """Grows by one with every reading that was higher than all before it."""

    def see(self, figures: Figures, phase: str) -> None:
        """Takes a reading. What grew since the last one grew in `phase`; an empty one is not kept apart."""
        if figures == self._last:
            return
        highest, self._last = self._highest, figures
        self._highest = Figures(*map(max, figures, highest))
        if self._highest == highest:
            return
        self.version += 1
        allocated = figures.allocated_bytes if figures.allocated_bytes > highest.allocated_bytes else 0
        reserved = figures.reserved_bytes if figures.reserved_bytes > highest.reserved_bytes else 0
        if phase and (allocated or reserved):
            self._keep(phase, allocated, reserved)

    def see_exact(self, figures: Figures, phase: str) -> None:
        """Takes a reading of peaks that were reset when `phase` began."""
        self.see(figures, "")
        if phase and self._keep(phase, figures.allocated_bytes, figures.reserved_bytes):
            self.version += 1

    @property
    def figures(self) -> Figures:
        """This training's: peaks are 0 while they stand where another training of this process had left them."""
        highest, before = self._highest, self._before
        return Figures(
            highest.allocated_bytes if highest.allocated_bytes > before.allocated_bytes else 0,
            highest.reserved_bytes if highest.reserved_bytes > before.reserved_bytes else 0,
            highest.retries - before.retries,
            self.ooms,
        )

    @property
    def ooms(self) -> int:
        """Failed allocations of this training."""
        return self._highest.ooms - self._before.ooms

    @property
    def phases(self) -> tuple[PhaseReport, ...]:
        """In the order in which they first grew."""
        return tuple(PhaseReport(phase=name, allocated_bytes=one, reserved_bytes=two) for name, (one, two) in self._phases.items())

    def _keep(self, phase: str, allocated: int, reserved: int) -> bool:
        """Whether that was higher than what is known of the phase."""
        known = self._phases.get(phase, (0, 0))
        self._phases[phase] = max(known[0], allocated), max(known[1], reserved)
        return self._phases[phase] != known
