"""The words behind a program as flags and positional words, as argparse and its like take them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.settings import Settings

Word = Stated
"""One word of a command, without its quotes; its place has no key yet."""

_NEGATIVE = re.compile(r"-\.?\d")
_FLAG = re.compile(r"--?[A-Za-z_]")

MOST_WORDS = 20_000


@dataclass(slots=True)
class Arguments:
    """`flags`: name without leading hyphens, with _ for -, dots kept -> the last value, a list where several words follow; a bare flag is
    True. `positional`: the words before, between and behind that belong to no flag (those behind a flag are its values)."""

    flags: Settings = field(default_factory=Settings)
    positional: list[Word] = field(default_factory=list)

    def __call__(self, name: str) -> Stated | None:
        """The flag of a name."""
        return self.flags(name)


def arguments_of(words: Sequence[Word], bare: Iterable[str] = ()) -> Arguments:
    """Flags and other words. `bare`: flags that never take a value, so that a word behind them is positional."""
    out, plain = Arguments(), frozenset(map(_name, bare))
    at = 0
    words = words[:MOST_WORDS]
    while at < len(words):
        word = words[at]
        at += 1
        if not is_flag(word.text):
            out.positional.append(word)
            continue
        name, joined, value = word.text.partition("=")
        place = Place(kind=FLAG, key=name, file=word.place.file, line=word.place.line)
        if joined:
            out.flags.override(_name(name), Stated(value, place))
            continue
        values: list[object] = []
        while at < len(words) and not is_flag(words[at].text) and _name(name) not in plain:
            values.append(words[at].text)
            at += 1
        out.flags.override(_name(name), Stated(values if len(values) > 1 else values[0] if values else True, place))
    return out


def overrides_of(words: Iterable[Word]) -> Settings:
    """Words of the form `key=value` (Hydra, torchtune, OmegaConf), with + and ++ in front left away."""
    out = Settings()
    for word in words:
        key, joined, value = word.text.partition("=")
        if joined and re.match(r"[+~]{0,2}[A-Za-z_][\w.\-/@]*$", key):
            name = key.lstrip("+~")
            given = None if value == "null" else value  # YAML's word, which takes back what a config says
            out.override(name, Stated(given, Place(kind=FLAG, key=key, file=word.place.file, line=word.place.line)))
    return out


def is_flag(text: str) -> bool:
    """Whether a word begins a flag; a negative number does not."""
    return bool(_FLAG.match(text)) and not _NEGATIVE.match(text)


def _name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")
