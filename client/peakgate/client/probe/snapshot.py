"""One device's part of a snapshot of the CUDA caching allocator, checked field by field: it comes from outside.

Source of the format: torch/cuda/memory.py, `_snapshot` (Snapshot, Segment, Block, TraceEntry, Frame).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from peakgate.client.errors import InputError

LARGEST_BYTES = 1 << 50
ACTIONS = frozenset({"alloc", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap"})
"""Those that move memory; between `free_requested` and `free_completed` a block still waits for another stream."""

FAILED, NOWHERE = "oom", -1
"""A request that no memory was found for, and the address that it has not got."""

GROWS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

Frames = tuple[tuple[str, str], ...]
"""(file, function) of a stack, innermost first."""

Fields = Mapping[str, object]
Place = tuple[int, str]
"""(address, pool)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An entry of the history."""

    name: str
    address: int
    nbytes: int
    stream: str
    frames: Frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """`alive`: bytes by address at the moment of the snapshot, None where it was not recorded; so `reserved_bytes`."""

    actions: tuple[Action, ...]
    alive: dict[int, Action] | None
    reserved_bytes: int | None
    expandable: bool
    out_of_memory: bool
    """Whether an allocation failed for good: the run needs more than the snapshot shows."""


def snapshot_of(data: object, device: int | None) -> Snapshot:
    """The snapshot of a device: the one that is named, else the only one with a history. Raises InputError."""
    whole = _fields(data, "the snapshot") if isinstance(data, dict) else {"device_traces": data}
    traces = [_list(each, "device_traces") for each in _list(whole.get("device_traces"), "device_traces")]
    number = _device(traces, device)
    known = _Stacks()
    segments = [_fields(each, "segments") for each in _list(whole["segments"], "segments")] if "segments" in whole else None
    own = None if segments is None else [each for each in segments if _whole(each, "device", 0) == number]
    entries = [_fields(each, "device_traces") for each in traces[number]]
    return Snapshot(
        actions=tuple(action for each in entries for action in _actions(each, known)),
        alive=None if own is None else _alive(own, known),
        reserved_bytes=None if own is None else sum(_whole(each, "total_size") for each in own),
        expandable=any(each.get("is_expandable") is True for each in own or ()),
        out_of_memory=any(each.get("action") == FAILED for each in entries),
    )


def _device(traces: list[list[object]], device: int | None) -> int:
    recorded = [number for number, trace in enumerate(traces) if trace]
    if device is not None and device not in recorded:
        raise InputError(f"device {device} has no history in the snapshot; those that have one: {recorded}")
    if not recorded:
        raise InputError("the snapshot holds no history: call torch.cuda.memory._record_memory_history() before the steps")
    if device is None and len(recorded) > 1:
        raise InputError(f"the snapshot holds the history of several devices: name one of {recorded} with --device")
    return recorded[0] if device is None else device


def _actions(fields: Fields, known: _Stacks) -> Iterator[Action]:
    """What an entry moves; a request that failed is counted as one that was made for a moment."""
    if fields.get("action") == FAILED:
        asked = Action(name="alloc", address=NOWHERE, nbytes=_whole(fields, "size"), stream="", frames=known.of(fields.get("frames")))
        yield from (asked, replace(asked, name="free_completed"))
    elif fields.get("action") in ACTIONS:
        yield _action(fields, known)


def _action(fields: Fields, known: _Stacks) -> Action:
    return Action(
        name=str(fields["action"]),
        address=_whole(fields, "addr"),
        nbytes=_whole(fields, "size"),
        stream=_stream(fields, "pool_id"),
        frames=known.of(fields.get("frames")),
    )


def _stream(fields: Fields, pool: str) -> str:
    """The pool's name: a CUDA graph's own, or that of a stream; the default stream's is empty."""
    private = fields.get(pool)
    if isinstance(private, tuple) and len(private) == 2 and any(private):
        return "graph" + "_".join(str(part) for part in private if type(part) is int)
    stream = _whole(fields, "stream", 0)
    return str(stream) if stream else ""


def _alive(segments: list[Fields], known: _Stacks) -> dict[int, Action]:
    """Blocks in use; where old libraries give them no address, they follow one another in their segment."""
    out: dict[int, Action] = {}
    for segment in segments:
        at = _whole(segment, "address")
        stream = _stream(segment, "segment_pool_id")
        for block in (_fields(each, "blocks") for each in _list(segment.get("blocks"), "blocks")):
            size = _whole(block, "size")
            if str(block.get("state", "")).startswith("active"):
                address, asked = _whole(block, "address", at), _whole(block, "requested_size", size)
                frames = known.of(block.get("frames"))
                out[address] = Action(name="alloc", address=address, nbytes=asked or size, stream=stream, frames=frames)
            at += size
    return out


class _Stacks:
    """Stacks by the identity of their list: a history repeats them."""

    DEEPEST = 512

    def __init__(self) -> None:
        self.known: dict[int, Frames] = {}

    def of(self, frames: object) -> Frames:
        if not isinstance(frames, list):
            return ()
        if id(frames) not in self.known:
            listed = (_fields(each, "frames") for each in frames[: self.DEEPEST])
            self.known[id(frames)] = tuple((str(each.get("filename", "")), str(each.get("name", ""))) for each in listed)
        return self.known[id(frames)]


def _fields(value: object, what: str) -> Fields:
    if not isinstance(value, dict):
        raise InputError(f"the file is no snapshot of torch.cuda.memory: {what} is no mapping")
    return cast("Fields", value)


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise InputError(f"the file is no snapshot of torch.cuda.memory: {what} is no list")
    return value


def _whole(fields: Fields, name: str, default: int | None = None) -> int:
    value = fields.get(name, default)
    if type(value) is not int or not 0 <= value < 1 << 64 or (name.endswith("size") and value > LARGEST_BYTES):
        raise InputError(f"the file is no snapshot of torch.cuda.memory: {name} is {str(value)[:40]!r}")
    return value
