"""A pickle reader that knows numbers, text and plain containers, and nothing else: no word of a file can name code.

It reads what `pickle.dump` writes of such data (Python's Lib/pickletools.py lists the opcodes); every other opcode is refused. Its memory
is bounded by the bytes of the file and by MOST_VALUES: no opcode allocates what it only announces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from peakgate.client.errors import InputError

MOST_VALUES = 1 << 24
"""Values beyond which a file is refused: a history of a million events has about six million."""


class PlainPickle:
    """One machine for one file."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.values = data, 0, 0
        self.stack: list[object] = []
        self.outer: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def load(self) -> object:
        """The one value of the file. Raises InputError that says what is wrong with it."""
        try:
            while (opcode := self.data[self.at]) != STOP:
                self.at += 1
                OPCODES[opcode](self)
            (value,) = self.stack
        except KeyError as error:
            raise InputError(
                "the file is no snapshot: it is no pickle, or one that holds more than numbers, text and containers"
            ) from error
        except (IndexError, struct.error) as error:
            raise InputError("the snapshot ends in the middle of a value: the file was cut off") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(f"the file is no snapshot: {error}") from error
        return value

    def take(self, count: int) -> bytes:
        """The next bytes of the file."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise IndexError
        return self.data[start : self.at]

    def skip(self, count: int) -> None:
        """Passes over bytes."""
        self.take(count)

    def push(self, value: object) -> None:
        """A new value."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values; record a shorter history")
        self.stack.append(value)

    def number(self, form: str) -> int:
        """A whole number in the file."""
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return int(value)

    def marked(self) -> list[object]:
        """What was pushed since the last mark."""
        items = self.stack
        self.stack = self.outer.pop()
        return items

    def mark(self) -> None:
        """Begins a list of items."""
        self.outer.append(self.stack)
        self.stack = []

    def remember(self, place: int) -> None:
        """Names the last value, for it may be used again."""
        self.memo[place] = self.stack[-1]

    def extend(self, items: list[object]) -> None:
        """Appends to the list under the items."""
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError("items for what is no list")
        target.extend(items)

    def update(self, items: list[object]) -> None:
        """Sets pairs of the mapping under the items; keys are text."""
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2 or not all(type(key) is str for key in items[::2]):
            raise TypeError("a mapping whose keys are no text")
        target.update(zip(items[::2], items[1::2], strict=True))

    def last(self, count: int) -> list[object]:
        """Takes the last values off the stack."""
        if len(self.stack) < count:
            raise IndexError
        items = self.stack[-count:]
        del self.stack[-count:]
        return items


def _text(form: str) -> Callable[[PlainPickle], None]:
    return lambda machine: machine.push(machine.take(machine.number(form)).decode("utf-8", "replace"))


def _whole(form: str) -> Callable[[PlainPickle], None]:
    return lambda machine: machine.push(machine.number(form))


def _tuple(count: int) -> Callable[[PlainPickle], None]:
    return lambda machine: machine.push(tuple(machine.last(count)))


STOP = ord(".")

OPCODES: dict[int, Callable[[PlainPickle], None]] = {
    0x80: lambda machine: machine.skip(1),  # PROTO
    0x95: lambda machine: machine.skip(8),  # FRAME
    ord("}"): lambda machine: machine.push({}),
    ord("]"): lambda machine: machine.push([]),
    ord(")"): lambda machine: machine.push(()),
    ord("N"): lambda machine: machine.push(None),
    0x88: lambda machine: machine.push(True),
    0x89: lambda machine: machine.push(False),
    ord("K"): _whole("<B"),
    ord("M"): _whole("<H"),
    ord("J"): _whole("<i"),
    0x8A: lambda machine: machine.push(int.from_bytes(machine.take(machine.number("<B")), "little", signed=True)),  # LONG1
    ord("G"): lambda machine: machine.push(struct.unpack(">d", machine.take(8))[0]),
    0x8C: _text("<B"),
    ord("X"): _text("<I"),
    0x8D: _text("<Q"),
    ord("("): PlainPickle.mark,
    ord("t"): lambda machine: machine.push(tuple(machine.marked())),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("a"): lambda machine: machine.extend(machine.last(1)),
    ord("e"): lambda machine: machine.extend(machine.marked()),
    ord("s"): lambda machine: machine.update(machine.last(2)),
    ord("u"): lambda machine: machine.update(machine.marked()),
    0x94: lambda machine: machine.remember(len(machine.memo)),  # MEMOIZE
    ord("q"): lambda machine: machine.remember(machine.number("<B")),
    ord("r"): lambda machine: machine.remember(machine.number("<I")),
    ord("h"): lambda machine: machine.push(machine.memo[machine.number("<B")]),
    ord("j"): lambda machine: machine.push(machine.memo[machine.number("<I")]),
}
"""Opcode -> what it does."""
