"""Settings under the names of Megatron-LM's flags, read as numbers, switches and words; what cannot be read is a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from peakgate.readers import convert
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading, Value
from peakgate.readers.settings import Settings

T = TypeVar("T")

NOTHING = ("", "none", "null", "~")
MOST_NAMES = 12


@dataclass(slots=True)
class Options:
    """`settings` by flag name with _ for -; `whose`: the framework, in words, for its defaults."""

    settings: Settings
    reading: Reading
    whose: str = "Megatron-LM"
    dropout: float | None = 0.1
    """M TransformerConfig.hidden_dropout, attention_dropout; None where the model's own config decides."""
    complete: bool = True
    """Whether all settings are at hand; else what is not stated is not the framework's default."""
    amp: str = ""
    """A recipe of autocast in the place of Megatron's 16-bit weights."""
    known: dict[str, object] = field(default_factory=dict)

    def __call__(self, name: str) -> Stated | None:
        """The setting; None where it is absent or null."""
        stated = self.settings(name)
        if stated is None or (isinstance(stated.value, str) and stated.value.strip().lower() in NOTHING):
            return None
        return stated

    def _read(self, name: str, how: Callable[[Stated], T]) -> T | None:
        stated = self(name)
        if stated is None:
            return None
        if name not in self.known:
            try:
                self.known[name] = how(stated)
            except ValueError as error:
                self.reading.warnings.append(f"{name}: {stated.text[:80]!r} cannot be read ({stated.place}): {error}")
                self.known[name] = None
        return self.known[name]  # type: ignore[return-value]  # a name is always converted by the same function

    def whole(self, name: str) -> int | None:
        """A whole number above 0."""
        return self._read(name, convert.positive)

    def count(self, name: str) -> int | None:
        """A whole number, 0 too."""
        return self._read(name, convert.whole)

    def size(self, name: str, default: int) -> int:
        """A whole number above 0, or the default."""
        return self.whole(name) or default

    def number(self, name: str) -> float | None:
        """A number."""
        return self._read(name, convert.number)

    def on(self, name: str, *, default: bool = False) -> bool:
        """A switch."""
        found = self._read(name, convert.flag)
        return default if found is None else found

    def word(self, name: str, default: str = "") -> str:
        """A word in lower case, with _ for -."""
        stated = self(name)
        if stated is None:
            return default
        return _plain(str(stated.value[0]) if isinstance(stated.value, list) and stated.value else stated.text)

    def words(self, name: str) -> list[str]:
        """Several words: of a list, or split at commas and blanks."""
        stated = self(name)
        if stated is None or isinstance(stated.value, bool):
            return []
        if isinstance(stated.value, list):
            parts = [str(each) for each in stated.value[:MOST_NAMES]]
        else:
            parts = stated.text[:1000].strip("[]()").replace(",", " ").split()
        return [_plain(part.strip("'\"[], ")) for part in parts[:MOST_NAMES] if part.strip("'\"[], ")]

    def place(self, *names: str) -> Place:
        """Where the first of the names stands; the framework's default where none does."""
        stated = next((stated for name in names if (stated := self(name)) is not None), None)
        return stated.place if stated is not None else Place(kind=DEFAULT, key=self.whose)

    def state(self, path: str, value: Value | None, *names: str) -> None:
        """Notes a field at the place of the first of the names; None says nothing."""
        if value is not None:
            self.reading.state(path, value, self.place(*names))

    def sizes(self, paths: Mapping[str, str]) -> None:
        """Notes whole numbers above 0: setting -> field."""
        for name, path in paths.items():
            self.state(path, self.whole(name), name)

    def cannot_say(self, what: str, *names: str) -> None:
        """Notes something that has no field."""
        self.reading.cannot_say(what, self.place(*names))


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_")
