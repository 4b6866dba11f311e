"""Lines of a script that only a scheduler or this program reads: `#SBATCH --nodes=2`, `#PEAKGATE batch.sequence_length=4096`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile, zip_longest

from peakgate.readers.arguments import Arguments, Word
from peakgate.readers.files import FileError
from peakgate.readers.launchers.resources import Resources
from peakgate.readers.launchers.slurm import note_slurm, slurm_options
from peakgate.readers.place import DIRECTIVE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_yaml

_SBATCH = re.compile(r"^#SBATCH[ \t]+(.*)$", re.MULTILINE)
_OWN = re.compile(r"^[ \t]*#[ \t]*PEAKGATE:?[ \t]+(.*)$", re.MULTILINE)
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"']|["'])+""")
_INNER = re.compile(r"(?<!\A)^[^#\n]*#!", re.MULTILINE)
_ASKED = re.compile(r"-[NnGC]|--(nodes|ntasks|gpus|gres|mem|constraint)")
_COMMAND = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)
_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*")
LONGEST_LINE, MOST_LINES = 10_000, 1000
ASIDES = frozenset({"try", "override"})
"""What a line says to whoever admits the job: why it should run though it does not fit, and an operator's word."""
LONGEST_ASIDE = 200


def note_directives(
    text: str, file: str, resources: Resources, warnings: list[str], own: Reading, overriding: Iterable[tuple[str, Stated]]
) -> None:
    """What the lines of a script say; `overriding`: options on sbatch's command line, which win over the lines."""
    options = Arguments()
    for words in _sbatch_lines(text, file, warnings):
        for name, stated in slurm_options(words, DIRECTIVE)[0].flags.leaves.items():
            options.flags.override(name, stated)
    for name, stated in overriding:
        options.flags.override(name, stated)
    note_slurm(options, resources, warnings)
    for match, number in _lines(_OWN, text):
        _note_own(match[1][:LONGEST_LINE], Place(kind=DIRECTIVE, key="#PEAKGATE", file=file, line=number), own)


def _sbatch_lines(text: str, file: str, warnings: list[str]) -> Iterator[list[Word]]:
    """Words of each #SBATCH line; Slurm reads those up to the first command of a script (sbatch(1))."""
    first, inner = _COMMAND.search(text), _INNER.search(text)
    for match, number in _lines(_SBATCH, text):
        if inner is not None and match.start() > inner.start():
            return  # of a script that this one writes
        if first is not None and match.start() > first.start():
            if not _ASKED.match(match[1]):
                continue
            warnings.append(
                f"{file}:{number}: #SBATCH {match[1].strip()[:80]} stands behind the first command, where Slurm does not read it"
            )
            continue
        words = takewhile(lambda word: not word.startswith("#"), _WORD.findall(match[1][:LONGEST_LINE]))
        yield [Stated(re.sub("[\"']", "", word), Place(kind=DIRECTIVE, file=file, line=number)) for word in words]


def _lines(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Matches with their lines. Raises FileError for more than any script has."""
    line, counted = 1, 0
    for at, match in enumerate(pattern.finditer(text)):
        if at >= MOST_LINES:
            raise FileError(f"has more than {MOST_LINES} lines for a scheduler")
        line, counted = line + text.count("\n", counted, match.start(1)), match.start(1)
        yield match, line


def _note_own(text: str, place: Place, own: Reading) -> None:
    """`key=value`, one or several; a value is YAML, so that lists and mappings can be written."""
    starts = [match for match in _ASSIGNED.finditer(text) if match.start() == 0 or text[match.start() - 1].isspace()]
    if text.count("{") or text.count("["):
        starts = starts[:1]
    for match, following in zip_longest(starts, starts[1:]):
        value = text[match.end() : following.start() if following is not None else len(text)].strip()
        value = re.sub(r"\s#.*$", "", value)
        if match[1] in ASIDES:
            own.asides[match[1]] = value.strip("\"'")[:LONGEST_ASIDE]
            continue
        try:
            leaves = read_yaml(f"value: {value}", place.file)[0].leaves
        except FileError:
            leaves = {"value": Stated(value, place)}
        for path, stated in leaves.items():
            own.fields[match[1] + path.removeprefix("value")] = Stated(stated.value, place)
