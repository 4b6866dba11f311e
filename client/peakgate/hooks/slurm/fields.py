"""One field after another of a job description, as text or as a number; a change of a job falls back to the job as it was. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RECORD = "job_rec."
"""In front of the names of the job that a change is about."""

NO_VALUES, NO_VALUES_16 = 0xFFFFFFFE, 0xFFFE
"""NO_VAL and NO_VAL16: from here on a number stands for none that anybody stated (slurm/slurm.h; the next one is INFINITE)."""

# Fields of 16 bits; the others have 32 or 64.
_SHORT = frozenset({"cpus_per_task", "ntasks_per_gpu", "ntasks_per_node", "ntasks_per_socket", "ntasks_per_tres", "sockets_per_node"})

SETTING = "PEAKGATE_"
"""The only variables of a job's environment that are anybody's business here."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A job description, whose values may be of any kind."""

    values: Mapping[str, object]

    @property
    def is_change(self) -> bool:
        """Whether a job is there already."""
        return any(name.startswith(RECORD) for name in self.values)

    def states(self, name: str) -> bool:
        """Whether this description has the field at all, be it to take it away."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """Empty when it was not stated, and when a change takes it away."""
        value = self._value(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """None when it was not stated; Lua has no whole numbers, so 2.0 is one."""
        for value in (self.values.get(name), self.values.get(RECORD + name)):
            number = _whole(value, NO_VALUES_16 if name in _SHORT else NO_VALUES)
            if number is not None:
                return number
        return None

    def words(self, name: str) -> tuple[str, ...]:
        """A list, or the values of a table whose keys are their places."""
        value = self._value(name)
        if isinstance(value, Mapping):
            places = {number: word for key, word in value.items() if (number := _place(key)) is not None}
            value = [places[number] for number in sorted(places)]
        return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list | tuple) else ()

    def settings(self) -> dict[str, str]:
        """The job's variables that are settings of ours."""
        value = self._value("environment")
        pairs = value.items() if isinstance(value, Mapping) else ()
        return {str(key): text for key, text in pairs if isinstance(text, str) and str(key).startswith(SETTING)}

    def _value(self, name: str) -> object:
        value = self.values.get(name)
        return self.values.get(RECORD + name) if value is None else value


def _whole(value: object, below: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
        return None
    return int(value) if value == int(value) else None


def _place(key: object) -> int | None:
    text = str(key)
    return int(text) if text.isdecimal() and len(text) < 6 else None
