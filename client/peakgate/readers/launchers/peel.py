"""A launch without what starts it: launchers are taken off from outside in until a program is left."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from peakgate.readers.arguments import Word
from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.accelerate import accelerate, deepspeed
from peakgate.readers.launchers.environment import note_environment, state_environment
from peakgate.readers.launchers.resources import state_resources
from peakgate.readers.launchers.slurm import note_slurm, slurm_options, slurm_variables
from peakgate.readers.launchers.state import KNOWN_SCRIPTS, Launcher, Peel, peel_of
from peakgate.readers.launchers.torchrun import colossalai, composer, mpi, torchrun, tune
from peakgate.readers.launchers.wrappers import WRAPPERS, assigned, env
from peakgate.readers.place import LAUNCHER, VARIABLE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.shell.commands import Started
from peakgate.readers.shell.directives import note_directives
from peakgate.readers.shell.ignored import MODULES
from peakgate.readers.shell.values import Segment, Shell, Value, shell_of
from peakgate.readers.shell.walk import started_by

MOST_LAUNCHERS = 60
MOST_STARTER_WORDS = 500
"""In front of the command that a starter is given."""
DEEPEST = 12
"""Of scripts that start scripts."""

_SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "ash")
_PYTHON = re.compile(r"(python|pypy|ipython)[\d.]*(-config)?(\.exe)?$")
_UNKNOWN = re.compile(r"\$\w+$|\$\{[^}]*\}$")
_SCRIPT = re.compile(r".+\.(sh|bash|sbatch|slurm)$")


def python(peel: Peel) -> None:
    """`python -u script`, `python -m module`; a program text behind `-c` and what comes from its input are no program."""
    at, words = 1, peel.words
    while at < len(words) and words[at].text.startswith("-") and words[at].text not in ("-m", "-c", "-"):
        if words[at].text.startswith("-m"):
            words = [*words[:at], replace(words[at], value=words[at].text[2:]), *words[at + 1 :]]
            break
        at += 2 if words[at].text in ("-W", "-X", "-Q", "--check-hash-based-pycs") else 1
    words = words[at:]
    if words and words[0].text == "-m":
        words = words[1:]
    elif words and words[0].text.startswith("-"):
        words = []
    peel.words = words


def srun(peel: Peel) -> None:
    """A step of an allocation: what it says of tasks holds; GPUs and nodes are the allocation's where there is one."""
    options, rest = slurm_options(peel.words[1:], LAUNCHER)
    resources, before = peel.resources, peel.resources.copy()
    note_slurm(options, resources, peel.warnings if before.of_a_node() is None else [])
    if before.nodes is not None:
        resources.nodes = before.nodes
    if before.of_a_node() is not None:
        resources.gpus, resources.gpus_per_node, resources.gpu_type = before.gpus, before.gpus_per_node, before.gpu_type
    if options.flags("ntasks_per_node") is not None and options.flags("ntasks") is None:
        resources.tasks = None
    resources.host_memory_bytes = before.host_memory_bytes or resources.host_memory_bytes
    resources.stepped = True
    peel.note("srun", options)
    _export(options.flags("export"), peel)
    peel.words = rest


def _export(stated: Stated | None, peel: Peel) -> None:
    """`--export=ALL,NAME=value`."""
    for one in stated.text.split(",")[:1000] if stated is not None else ():
        key, joined, value = one.partition("=")
        if joined and stated is not None:
            peel.set(key, Stated(value, Place(kind=VARIABLE, key=key, file=stated.place.file, line=stated.place.line)))


def salloc(peel: Peel) -> None:
    """An allocation with its command."""
    options, rest = slurm_options(peel.words[1:], LAUNCHER)
    note_slurm(options, peel.resources, peel.warnings)
    peel.note("salloc", options)
    peel.words = rest


LAUNCHERS: dict[str, Launcher] = {
    **WRAPPERS,
    "env": env,
    "srun": srun,
    "salloc": salloc,
    "mpirun": mpi("mpirun"),
    "mpiexec": mpi("mpiexec"),
    "mpiexec.hydra": mpi("mpiexec"),
    "orterun": mpi("mpirun"),
    "prun": mpi("mpirun"),
    "horovodrun": mpi("horovodrun"),
    "torchrun": torchrun,
    "torch.distributed.run": torchrun,
    "torch.distributed.launch": torchrun,
    "torchrun_main": torchrun,
    "dlrover-run": torchrun,
    "hyperpodrun": torchrun,  # SageMaker HyperPod's elastic agent: torchrun's flags
    "ft_launcher": torchrun,  # nvidia-resiliency-ext fault_tolerance/launcher.py: torchrun's flags and some with values of their own
    "accelerate": accelerate,
    "accelerate-launch": accelerate,
    "accelerate.commands.launch": accelerate,
    "deepspeed": deepspeed,
    "deepspeed.launcher.runner": deepspeed,
    "tune": tune,
    "colossalai": colossalai,
    "composer": composer,
}


def peeled(launch: Launch) -> Launch:
    """The launch from its program on: of a script with several commands the first. See `launches_of`, which gives all of them."""
    return next(launches_of(launch), launch)


def launches_of(launch: Launch) -> Iterator[Launch]:
    """The launches that a command comes to: one, or those of a script that it starts, in order. A script that cannot be read is a launch
    of itself, with the reason as a warning."""
    yield from _launches(peel_of(launch))


def _launches(peel: Peel) -> Iterator[Launch]:
    for _ in range(MOST_LAUNCHERS):
        assigned(peel)
        _skip_unknown(peel)
        if not peel.words:
            return
        path = peel.words[0].text
        name = path.rpartition("/")[2]
        if name in _SHELLS or name == "sbatch" or _SCRIPT.match(name) or _is_script(path, peel):
            yield from _of_shell(peel, name)
            return
        before = peel.words
        if (launcher := LAUNCHERS.get(name)) is not None:
            launcher(peel)
        elif _PYTHON.match(name):
            python(peel)
        if peel.words is before or peel.words == before:
            break
    if peel.depth <= DEEPEST and (started := _behind_dashes(peel.words)) is not None:
        yield from _of_starter(peel, started)
        return
    if peel.words and peel.words[0].text not in MODULES:
        yield _finished(peel)


def _behind_dashes(words: Sequence[Word]) -> list[Word] | None:
    """The command that a starter of somebody's own is given behind `--`; None where no command stands there."""
    at = next((at for at, word in enumerate(words[:MOST_STARTER_WORDS]) if word.text == "--"), None)
    if not at or at + 1 >= len(words):
        return None
    following = words[at + 1].text.rpartition("/")[2]
    is_command = following in LAUNCHERS or following in (*_SHELLS, "source") or bool(_PYTHON.match(following))
    return list(words[at + 1 :]) if is_command else None


def _of_starter(peel: Peel, words: list[Word]) -> Iterator[Launch]:
    """The commands that a starter joins: `source settings \\&\\& python train.py`."""
    name, begin = peel.words[0].text.rpartition("/")[2], 0
    words = [part for word in words for part in _apart(word)]
    for at in range(len(words) + 1):
        if at < len(words) and words[at].text not in ("&&", ";"):
            continue
        if begin < at and words[begin].text != "source":
            inner = peel.copy(words[begin:at], peel.environment, peel.files)
            inner.note(name)
            yield from _launches(inner)
        begin = at + 1


def _apart(word: Word) -> list[Word]:
    """`&&python` as two words."""
    return [replace(word, value="&&"), replace(word, value=word.text[2:])] if word.text.startswith("&&") and word.text != "&&" else [word]


def _skip_unknown(peel: Peel) -> None:
    """A launcher by a variable that nobody set, in front of a command."""
    while len(peel.words) > 1 and _UNKNOWN.match(peel.words[0].text) and not peel.words[1].text.startswith("-"):
        peel.words = peel.words[1:]


def _is_script(path: str, peel: Peel) -> bool:
    """Whether a file that is started by its path is a shell script."""
    if "/" not in path or path.endswith(".py") or path.rpartition("/")[2] in LAUNCHERS:
        return False
    try:
        return bool(re.match(r"#!.*\b(ba|z|da|k)?sh\b", peel.files.text(path)[:200]))
    except FileError:
        return False


def _of_shell(peel: Peel, name: str) -> Iterator[Launch]:
    """The commands of a script, of `-c`, of a batch script with its own options."""
    if peel.depth > DEEPEST:
        peel.warnings.append("scripts start scripts without end")
        yield _finished(peel)
        return
    words = peel.words
    if name == "sbatch":
        options, rest = slurm_options(words[1:], LAUNCHER)
        wrapped = options.flags("wrap")
        peel.note("sbatch", options)
        if wrapped is not None:
            note_slurm(options, peel.resources, peel.warnings)
            yield from _commands(peel, wrapped.text, _shell(peel, "", []), wrapped.place.line or 1)
        elif rest:
            yield from _of_file(peel, rest, words, list(options.flags.leaves.items()))
        return
    rest = words[1:] if name in _SHELLS else words
    while name in _SHELLS and rest and rest[0].text.startswith(("-", "+")) and rest[0].text != "-":
        flag = rest[0].text
        rest = rest[1:]
        if re.fullmatch(r"-[a-z]*c", flag) and rest:
            yield from _commands(peel, rest[0].text, _shell(peel, "", rest[2:]), rest[0].place.line or 1, rest[0].place.file)
            return
        if re.fullmatch(r"[-+][a-z]*[oO]", flag) or flag in ("--rcfile", "--init-file"):  # -euo pipefail
            rest = rest[1:]
    if rest:
        yield from _of_file(peel, rest, words, [])


def _of_file(peel: Peel, rest: Sequence[Word], words: list[Word], options: list[tuple[str, Stated]]) -> Iterator[Launch]:
    """The commands of a script with its arguments; `options` of sbatch win over the lines in it."""
    path = rest[0].text
    try:
        text = peel.files.text(path)
        note_directives(text, path, peel.resources, peel.warnings, peel.own, options)
        yield from _commands(peel, text, _shell(peel, path, rest[1:]))
    except FileError as error:
        if path.rpartition("/")[2] not in KNOWN_SCRIPTS:
            peel.warnings.append(f"{path} {error}: what it starts is not known")
        peel.words = words
        yield _finished(peel)


def script_launches(launch: Launch, text: str, path: str) -> Iterator[Launch]:
    """The launches of a script that is read by itself, whose arguments nobody said. Raises FileError."""
    peel = peel_of(launch)
    note_directives(text, path, peel.resources, peel.warnings, peel.own, [])
    yield from _commands(peel, text, _shell(peel, path, None))


def command_launches(launch: Launch, text: str) -> Iterator[Launch]:
    """The launches of a command line. Raises FileError."""
    peel = peel_of(launch)
    yield from _commands(peel, text, _shell(peel, "", []))


def _shell(peel: Peel, path: str, arguments: Sequence[Word] | None) -> Shell:
    """The shell of a script that is started."""
    shell = shell_of(peel.environment, path)
    shell.depth, shell.budget, shell.unseen = peel.depth, peel.budget, peel.unseen
    shell.imaged = peel.imaged
    shell.arguments = None if arguments is None else [_value(word) for word in arguments]
    shell.variables |= {name: variable for name, variable in peel.unsure.items() if name not in shell.variables}
    for name, text in _variables(peel).items():
        if name not in shell.variables:
            shell.give(name, text)
    return shell


def _value(word: Word) -> Value:
    unknown = word.text.startswith("$")
    return (Segment(word.text, word.place.line, word.place.file, not unknown),)


def _variables(peel: Peel) -> dict[str, str]:
    """What is set for every script: Slurm's variables in a job of Slurm."""
    resources = peel.resources
    in_slurm = resources.stepped or "sbatch" in peel.launchers or resources.nodes is not None or resources.of_a_node() is not None
    own = {"HOME": "~", "PWD": "."}
    return (slurm_variables(resources) if in_slurm and not peel.around.fields else {}) | own


def _commands(peel: Peel, text: str, shell: Shell, line: int = 1, file: str | None = None) -> Iterator[Launch]:
    if file is not None:
        shell.file = shell.file or file
    for started in started_by(text, peel.files, shell, line):
        launches = _launches(_inside(peel, started))
        yield from launches if started.otherwise is None else _beside(launches, peel, started.otherwise)


def _beside(launches: Iterator[Launch], peel: Peel, otherwise: Started) -> Iterator[Launch]:
    """Launches, each with what it is without what rests on variables that an image may set."""
    others = _readable(_launches(replace(_inside(peel, otherwise), imaged=False)))
    for launch in launches:
        other = next(others, None)
        launch.may_not_run |= other is None
        launch.otherwise = (*launch.otherwise, *([other] if other is not None else []))
        yield launch


def _readable(launches: Iterator[Launch]) -> Iterator[Launch]:
    """Launches up to what cannot be read."""
    with contextlib.suppress(FileError):
        yield from launches


def _inside(peel: Peel, started: Started) -> Peel:
    inner = peel.copy(list(started.words), started.environment, started.files)
    inner.warnings += started.warnings
    inner.unsure = started.unsure
    inner.may_not_run = peel.may_not_run or started.may_not_run
    inner.may_come_too_late = peel.may_come_too_late or started.may_come_too_late
    return inner


def _finished(peel: Peel) -> Launch:
    """The launch of what is left."""
    note_environment(peel)
    reading = Reading()
    reading.merge(peel.around)
    state_resources(peel.resources, reading)
    state_environment(peel, reading)
    reading.warnings += dict.fromkeys(peel.warnings)
    environment = Settings({name: stated for name, stated in peel.environment.leaves.items() if name not in ("HOME", "PWD")})
    return Launch(
        words=peel.words,
        files=peel.files,
        environment=environment,
        around=reading,
        own=peel.own,
        launchers=tuple(peel.launchers),
        launcher_flags=peel.flags,
        left_out=peel.budget.left_out,
        may_not_run=peel.may_not_run,
        may_come_too_late=peel.may_come_too_late,
    )
