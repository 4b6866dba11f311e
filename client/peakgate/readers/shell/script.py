"""The way in: words of a command, and the launches of a command line or a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError, Files
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.peel import command_launches, launches_of, script_launches
from peakgate.readers.place import FLAG, Place, Stated
from peakgate.readers.shell.expand import fields_of
from peakgate.readers.shell.lexer import MOST_PIECES, tokens_of
from peakgate.readers.shell.tokens import RawWord
from peakgate.readers.shell.values import Shell, word_of

_NAMES = (".sh", ".bash", ".sbatch", ".slurm", ".sub", ".zsh", ".job")
_FIRST_LINE = re.compile(r"#!.*\b(ba|z|da|k)?sh\b")


def words_of(command: str | Iterable[str]) -> Sequence[Word]:
    """The words of one command; words that are given are taken as they are."""
    place = Place(kind=FLAG)
    if not isinstance(command, str):
        return [Stated(word, place) for word in command]
    words = [token for token in tokens_of(command) if isinstance(token, RawWord) and token.parts]
    try:
        return [Stated(word.value, place) for word in map(word_of, fields_of(words, Shell()))]
    except FileError:
        return []


def is_script(path: str, text: str) -> bool:
    """Whether a file is a script of a shell, by its name or its first line."""
    return path.lower().endswith(_NAMES) or bool(_FIRST_LINE.match(text[:200])) or text.lstrip()[:200].startswith("#SBATCH")


def launches_of_command(command: str | Iterable[str], files: Files) -> Iterator[Launch]:
    """The launches of a command line, or of the words of one command, launchers peeled off. Raises FileError."""
    if isinstance(command, str):
        yield from command_launches(Launch(files=files), command)
        return
    given = list(command)
    if len(given) > MOST_PIECES:
        raise FileError("holds more words than a launch does")
    yield from launches_of(Launch(words=words_of(given), files=files))


def launches_of_script(text: str, path: str, files: Files) -> Iterator[Launch]:
    """The launches of a script, in the order of a run, launchers peeled off. Raises FileError."""
    yield from script_launches(Launch(files=files), text, path)
