"""The flags of a launcher, which end where its command begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakgate.readers.arguments import Arguments, Word
from peakgate.readers.place import LAUNCHER, Place, Stated


def named(flag: str) -> str:
    """A flag's name: without hyphens in front, _ for -."""
    return flag.lstrip("-").replace("-", "_")


def placed(word: Word, key: str, kind: str = LAUNCHER) -> Place:
    """The place of a flag."""
    return Place(kind=kind, key=key, file=word.place.file, line=word.place.line)


def taken(words: Sequence[Word], values: Mapping[str, int], otherwise: int) -> tuple[Arguments, list[Word]]:
    """The flags in front and the words behind them. `values`: how many words follow a flag, `otherwise`: those of a flag that is not
    in it. `--name=value` needs no word; `--` ends the flags."""
    found, at = Arguments(), 0
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        word = words[at]
        at += 1
        if word.text == "--":
            break
        key, joined, value = word.text.partition("=")
        name, place = named(key), placed(word, key)
        if joined:
            found.flags.override(name, Stated(value, place))
            continue
        count = values.get(name, otherwise)
        following = [each.text for each in words[at : at + count]]
        at += count
        found.flags.override(name, Stated(True if not count else following[0] if len(following) == 1 else following, place))
    return found, list(words[at:])
