"""Lines of a script that only a scheduler or this program reads: `#SBATCH --nodes=2`, `#PEAKGATE batch.sequence_length=4096`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError
from peakgate.readers.launchers.resources import Resources
from peakgate.readers.launchers.slurm import note_slurm, slurm_options
from peakgate.readers.place import DIRECTIVE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_yaml
from peakgate.readers.shell.lexer import tokens_of
from peakgate.readers.shell.tokens import RawWord

_SBATCH = re.compile(r"#SBATCH\s+(.*)")
_OWN = re.compile(r"\s*#\s*PEAKGATE:?\s+(.*)")
_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*)\s*=\s*")
LONGEST_LINE = 10_000


def note_directives(
    text: str, file: str, resources: Resources, warnings: list[str], own: Reading, overriding: Iterable[tuple[str, Stated]]
) -> None:
    """What the lines of a script say; `overriding`: options on sbatch's command line, which win over the lines."""
    words = list(_sbatch_words(text, file, warnings))
    options, _ = slurm_options(words, DIRECTIVE)
    for name, stated in overriding:
        options.flags.override(name, stated)
    note_slurm(options, resources, warnings)
    for number, line in enumerate(text.splitlines(), start=1):
        if "PEAKGATE" in line and (match := _OWN.match(line[:LONGEST_LINE])):
            _note_own(match[1], Place(kind=DIRECTIVE, key="#PEAKGATE", file=file, line=number), own)


def _sbatch_words(text: str, file: str, warnings: list[str]) -> Iterator[Word]:
    """Words of the #SBATCH lines, which Slurm reads up to the first command of a script (sbatch(1))."""
    ended = False
    for number, line in enumerate(text.splitlines(), start=1):
        match = _SBATCH.match(line[:LONGEST_LINE])
        if match is None:
            ended = ended or bool(line.strip() and not line.lstrip().startswith("#"))
        elif ended:
            warnings.append(
                f"{file}:{number}: #SBATCH {match[1].strip()[:80]} stands behind the first command, where Slurm does not read it"
            )
        else:
            for token in tokens_of(match[1], number):
                if isinstance(token, RawWord):
                    yield Stated(token.written, Place(kind=DIRECTIVE, file=file, line=number))


def _note_own(text: str, place: Place, own: Reading) -> None:
    """`key=value`, one or several; a value is YAML, so that lists and mappings can be written."""
    starts = [match for match in _ASSIGNED.finditer(text) if match.start() == 0 or text[match.start() - 1].isspace()]
    if text.count("{") or text.count("["):
        starts = starts[:1]
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        value = text[match.end() : following.start() if following is not None else len(text)].strip()
        value = re.sub(r"\s#.*$", "", value)
        try:
            leaves = read_yaml(f"value: {value}", place.file)[0].leaves
        except FileError:
            leaves = {"value": Stated(value, place)}
        for path, stated in leaves.items():
            own.fields[match[1] + path.removeprefix("value")] = Stated(stated.value, place)
