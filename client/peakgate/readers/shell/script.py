"""Words of a command and launches of a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from peakgate.readers.arguments import Word
from peakgate.readers.files import Files
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.peel import peeled
from peakgate.readers.place import FLAG, Place


def words_of(command: str | Iterable[str]) -> Sequence[Word]:
    """The words of a command."""
    try:
        words = shlex.split(command, comments=True) if isinstance(command, str) else list(command)
    except ValueError:
        words = []
    return [Word(word, Place(kind=FLAG)) for word in words]


def is_script(path: str, text: str) -> bool:
    """Whether a file is a shell script."""
    return path.endswith((".sh", ".sbatch", ".bash")) or text.startswith("#!")


def launches_of_script(text: str, path: str, files: Files) -> Iterator[Launch]:
    """The commands of a script, peeled."""
    number = 1
    for line in text.replace("\\\n", " ").splitlines():
        words = [Word(word.value, Place(kind=FLAG, file=path, line=number)) for word in words_of(line)]
        number += 1
        if words:
            yield peeled(Launch(words=words, files=files))
