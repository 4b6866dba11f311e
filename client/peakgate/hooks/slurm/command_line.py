"""The words behind `peakgate sbatch`, `srun` and `salloc`: this program's own options, Slurm's, and where the script or command begins.

Only the standard library, and little of it: a job without a GPU must not wait for more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from peakgate.readers.launchers.slurm_options import BARE, SHORT

OWN = "peakgate_"
OWN_VALUED = frozenset({"try", "override", "mode", "server"})
OWN_BARE = frozenset({"judge"})
BETWEEN_COMPONENTS = ":"
"""Between the components of a heterogeneous job (sbatch(1), "Heterogeneous jobs")."""

_SBATCH = re.compile(r"^#SBATCH[ \t]+(.*)$", re.MULTILINE)
_COMMAND = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
_QUOTES = re.compile("[\"']")
LINES_LOOKED_AT = 1000


class OwnOptionError(Exception):
    """An option of this program's own that is none."""


class Component(NamedTuple):
    """Options of one component (name with underscores -> value, empty for a bare one); in `words` they end before `end`."""

    options: Mapping[str, str]
    begin: int
    end: int


class CommandLine(NamedTuple):
    """`words`: what goes to the real program. `at`: where the script or the command begins; the number of words without one."""

    program: str
    words: tuple[str, ...]
    own: Mapping[str, str]
    components: tuple[Component, ...]
    at: int

    @property
    def behind(self) -> tuple[str, ...]:
        """The script with its arguments, or the command."""
        return self.words[self.at :]


def read_command_line(program: str, words: Sequence[str]) -> CommandLine:
    """The words of a command line. Raises OwnOptionError."""
    kept, own, components = list(words), dict[str, str](), list[Component]()
    at = 0
    while True:
        begin, options = at, dict[str, str]()
        while at < len(kept) and kept[at].startswith("-") and kept[at] not in ("-", "--"):
            used, found = _option(kept, at)
            mine = {name.removeprefix(OWN): value for name, value in found.items() if name.startswith(OWN)}
            own |= _checked(mine)
            if mine:
                del kept[at : at + used]
            else:
                options |= found
                at += used
        components.append(Component(options, begin, at))
        if at >= len(kept) or kept[at] != BETWEEN_COMPONENTS:
            break
        at += 1
    at += at < len(kept) and kept[at] == "--"
    return CommandLine(program, tuple(kept), own, tuple(components), at)


def options_of_script(text: str) -> dict[str, str]:
    """What the #SBATCH lines in front of the first command say; of a heterogeneous job all components together."""
    command = _COMMAND.search(text)
    head = text[: command.start()] if command is not None else text
    options: dict[str, str] = {}
    for number, match in enumerate(_SBATCH.finditer(head)):
        if number >= LINES_LOOKED_AT:
            break
        words = [_QUOTES.sub("", word) for word in _WORD.findall(match[1])]
        at = 0
        while at < len(words) and words[at].startswith("-"):
            used, found = _option(words, at)
            at += used
            options |= found
    return options


def _option(words: Sequence[str], at: int) -> tuple[int, dict[str, str]]:
    """How many words the option at `at` takes, and what it says; several short ones may stand together (`-vN2`)."""
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    if word.startswith("--"):
        key, joined, value = word.removeprefix("--").partition("=")
        name = key.replace("-", "_")
        if joined or _is_bare(name):
            return 1, {name: value}
        return 2, {name: following}
    found: dict[str, str] = {}
    for place, letter in enumerate(word[1:], start=2):
        if letter not in SHORT:
            found[letter] = ""
        elif word[place:]:
            return 1, found | {SHORT[letter]: word[place:].removeprefix("=")}
        else:
            return 2, found | {SHORT[letter]: following}
    return 1, found


def _is_bare(name: str) -> bool:
    """Also of an option that is not written out, as getopt_long(3) takes it."""
    if name.startswith(OWN):
        return name.removeprefix(OWN) in OWN_BARE
    return name in BARE or (len(name) > 3 and name not in SHORT.values() and any(each.startswith(name) for each in BARE))


def _checked(own: Mapping[str, str]) -> Mapping[str, str]:
    for name in own:
        if name not in OWN_VALUED | OWN_BARE:
            known = ", ".join(f"--peakgate-{each}" for each in sorted(OWN_VALUED))
            raise OwnOptionError(f"--peakgate-{name.replace('_', '-')} is no option, known are {known}")
    return own


_GPU = re.compile(r"(?<![a-z])gpu(?!mem)", re.IGNORECASE)
COUNTED = ("gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket")
NAMED = ("gres", "tres_per_task", "tres_per_node", "tres_per_job", "tres_per_socket")
PREFIXES = {"sbatch": "SBATCH_", "salloc": "SALLOC_", "srun": "SLURM_"}
"""Of the variables that stand for options (the section INPUT ENVIRONMENT VARIABLES of each)."""


def asks_for_gpus(options: Mapping[str, str]) -> bool:
    """Whether whole GPUs are asked for; shards and MPS are shares of one, which are not judged against the card."""
    counted = any(options.get(name, "0").rpartition(":")[2] not in ("", "0") for name in COUNTED)
    return counted or any(_GPU.search(options.get(name, "")) is not None for name in NAMED)


def options_of_environment(program: str, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options that stand in variables; they win over #SBATCH lines and lose against the command line."""
    for name in (*COUNTED, *NAMED, "partition", "constraint", "export"):
        value = environment.get(f"{PREFIXES[program]}{name.upper()}")
        if value is not None:
            yield name, value


def options_around(line: CommandLine, script: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What holds for every component unless its own options say otherwise: #SBATCH lines, and variables before them."""
    return (options_of_script(script) if line.program == "sbatch" else {}) | dict(options_of_environment(line.program, environment))
