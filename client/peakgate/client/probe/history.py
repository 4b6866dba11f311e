"""A history of allocations as a step: what was alive before it, its phases, and what each allocation turned out to be.

Where stacks were recorded they tell the phases, and the phases in which an allocation lives tell what it is: what the forward pass makes
and the backward pass frees is an activation, what the backward pass leaves to the optimizer is a gradient, what the optimizer leaves is its
state. Without stacks all of it is one phase and of no kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from peakgate.client.probe.snapshot import GROWS, Action, Frames, Snapshot
from peakgate.client.probe.stacks import ENGINE, is_loading, is_workspace, phase_of
from peakgate.client.tracer.entries import Allocation, Entry, Freed, Phase

FIRST = "forward"

Span = tuple[int, str]
"""(forward pass, phase)."""


@dataclass(slots=True)
class Life:
    """An allocation from the place in the history where it is made (-1: before it) to where it is freed (None: never)."""

    made: Allocation
    frames: Frames
    begins: int
    span: Span
    ends: int | None = None
    freed_in: Span = (0, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`start`: what is alive before `entries`; `peaks` of the whole recording, in bytes."""

    start: list[Allocation]
    entries: list[Entry]
    live_bytes: int
    reserved_bytes: int | None
    stacks: bool
    phases: dict[str, int] = field(default_factory=dict)
    """Highest live bytes by phase."""


def history_of(snapshot: Snapshot) -> History:
    """The step around the highest moment, from one optimizer step to the next, or the whole recording where it holds no such step."""
    reader = _Reader(snapshot)
    lives, phases = reader.lives(), reader.phases
    for life in lives:
        life.made.category = _category(life)
    first, last = _window(phases, reader.highest_at)
    return History(
        start=[life.made for life in lives if life.begins < first and (life.ends is None or life.ends >= first)],
        entries=_entries(lives, phases, first, last),
        live_bytes=reader.highest,
        reserved_bytes=_reserved(snapshot),
        stacks=reader.stacks,
        phases=reader.highest_by,
    )


class _Reader:
    """Walks the actions once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.phases: list[str] = []
        self.highest = self.highest_at = 0
        self.highest_by: dict[str, int] = {}
        self.stacks = any(action.frames for action in snapshot.actions if action.name == "alloc")
        self.phase_of = lru_cache(maxsize=None)(phase_of)

    def lives(self) -> list[Life]:
        """Every allocation; `phases` are then those of the actions, `highest` the most bytes alive."""
        lives = [
            Life(Allocation(i, each.nbytes, "", each.stream), each.frames, -1, (0, self.phase_of(each.frames)))
            for i, each in enumerate(_before(self.snapshot))
        ]
        alive = {each.address: life for each, life in zip(_before(self.snapshot), lives, strict=True)}
        live, span = sum(life.made.nbytes for life in lives), (0, "")
        for at, action in enumerate(self.snapshot.actions):
            if action.name == "alloc":
                span = self._span(action, span)
                life = Life(Allocation(len(lives), action.nbytes, "", action.stream), action.frames, at, span)
                alive[action.address] = life
                lives.append(life)
                live += action.nbytes
            elif action.name == "free_completed" and action.address in alive:
                life = alive.pop(action.address)
                life.ends, life.freed_in = at, span
                live -= life.made.nbytes
            self.phases.append(span[1])
            self._high(live, at, span[1] or FIRST)
        return lives

    def _span(self, action: Action, before: Span) -> Span:
        """What a stack does not tell goes on."""
        told = "" if not self.stacks else self.phase_of(action.frames) if action.frames else ENGINE
        begins = told == FIRST and before[1] not in (FIRST, "loss")
        return before[0] + begins, told or before[1]

    def _high(self, live: int, at: int, phase: str) -> None:
        if live > self.highest:
            self.highest, self.highest_at = live, at
        self.highest_by[phase] = max(self.highest_by.get(phase, 0), live)


def _before(snapshot: Snapshot) -> list[Action]:
    """What was alive when the recording began: what is alive at its end, played backward."""
    alive = dict(snapshot.alive or {})
    for action in reversed(snapshot.actions):
        if action.name == "alloc":
            alive.pop(action.address, None)
        elif action.name == "free_completed":
            alive[action.address] = action
    return list(alive.values())


def _reserved(snapshot: Snapshot) -> int | None:
    """The most bytes of segments, played backward from the end."""
    if snapshot.reserved_bytes is None:
        return None
    now = highest = snapshot.reserved_bytes
    for action in reversed(snapshot.actions):
        now -= GROWS.get(action.name, 0) * action.nbytes
        highest = max(highest, now)
    return highest


def _window(phases: list[str], highest_at: int) -> tuple[int, int]:
    """From the first forward pass, or an optimizer step's end, to the next one's, around the highest moment; else all."""
    begins = [phases.index(FIRST)] if FIRST in phases else []
    ends = [at for at in range(1, len(phases)) if phases[at - 1] == "optimizer" and phases[at] != "optimizer"]
    first = max((at for at in (*begins, *ends) if at <= highest_at), default=0)
    return first, min((at for at in ends if at > highest_at), default=len(phases))


def _category(life: Life) -> str:
    """What an allocation is, by the phases in which it begins and ends."""
    phase, stays = life.span[1], life.ends is None
    if is_workspace(life.frames):
        return "workspaces" if stays else "temporaries"
    if stays and is_loading(life.frames):
        return "parameters"
    if life.begins < 0 and phase == "":
        return "unknown"
    return LASTING.get(phase, "unknown") if stays else "temporaries" if _same_pass(life) else OUTLIVING.get(phase, "temporaries")


LASTING = {"forward": "activations", "loss": "logits", "backward": "gradients", "optimizer": "optimizer_states"}
"""What is never freed, by the phase that makes it …"""

OUTLIVING = LASTING | {"optimizer": "temporaries"}
"""… and what lives on when the phase is over."""


def _same_pass(life: Life) -> bool:
    """Whether it is freed in the phase that makes it; forward pass and loss are one."""
    (made_in, made), (freed_in, freed) = life.span, life.freed_in
    return made_in == freed_in and (made == freed or {made, freed} == {"forward", "loss"})


RESIDENT = ("parameters", "unknown", "workspaces")


def _entries(lives: list[Life], phases: list[str], first: int, last: int) -> list[Entry]:
    """The actions of a window; what it makes for good is nothing that was there before."""
    for life in lives:
        if first <= life.begins < last and life.made.category in RESIDENT:
            life.made.category = "temporaries"
    moves: dict[int, Entry] = {life.begins: life.made for life in lives if first <= life.begins < last}
    moves |= {life.ends: Freed(life.made.number) for life in lives if life.ends is not None and first <= life.ends < last}
    out: list[Entry] = [Phase(FIRST)]
    phase = FIRST
    for at in range(first, last):
        if at not in moves:
            continue
        now = phases[at] or FIRST
        if now != phase:
            phase = now
            out.append(Phase(phase))
        out.append(moves[at])
    return out
