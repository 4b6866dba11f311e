"""A launch: the training program's own words and config, what starts it already peeled off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Protocol

from peakgate.readers.arguments import Arguments, Word, arguments_of
from peakgate.readers.files import FileError, Files, GivenFiles
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings

NOT_READ = "what it says is not read"
"""How the warning of a file that is not there ends: what is not stated may stand in it."""


NO_DEVICES = ("", "-1")
"""First of CUDA_VISIBLE_DEVICES where none is visible (CUDA C++ Programming Guide, Environment Variables: what is behind an invalid index
is invisible)."""

PRINTED = ("--help", "-h", "--version")
"""Flags of a program that ends when it has printed what they ask for (argparse, ArgumentParser.add_help and the action `version`)."""


@dataclass(kw_only=True)
class Launch:
    """`words`: the program first (a script, or a module behind `-m` or of `tune run`), then its words; empty for a config file that stands
    by itself, whose settings are `config`. `around`: what launchers, schedulers and manifests say (GPUs, nodes, variables that decide)."""

    words: Sequence[Word] = ()
    config: Settings = field(default_factory=Settings)
    config_file: str = ""
    files: Files = field(default_factory=GivenFiles)
    environment: Settings = field(default_factory=Settings)
    """Environment variables by name."""
    unseen: bool = False
    """Whether there are variables beside them that nobody shows: those of a secret, or of a config map that is not at hand."""
    unvalued: frozenset[str] = frozenset()
    """Names of variables whose values are not shown."""
    imaged: bool = False
    """Whether it runs in an image, whose variables nobody shows."""
    otherwise: Sequence[Launch] = ()
    """The same launch without words and variables that rest on what an image may set."""
    around: Reading = field(default_factory=Reading)
    own: Reading = field(default_factory=Reading)
    """What the submitter says itself, in #PEAKGATE lines: it wins over everything, in silence."""
    launchers: Sequence[str] = ()
    """Names of what was peeled off, from outside in: srun, torchrun, accelerate, deepspeed, tune …"""
    launcher_flags: dict[str, Arguments] = field(default_factory=dict)
    """The flags of each launcher by its name."""
    container: int = 0
    """Which container of a manifest starts it, from 1 on."""
    left_out: bool = False
    """Whether words may be missing that stand in a file which is not at hand."""
    may_not_run: bool = False
    """Whether a script starts it in a branch of which nobody knows here whether it is taken, or starts another one when it fails: another
    launch may run in its place."""
    may_come_too_late: bool = False
    """Whether a script starts another one before it, and may end between them."""
    kept: dict[str, object] = field(default_factory=dict)
    """What readers of one family found in it and ask for again, by a name of theirs."""

    @property
    def program(self) -> str:
        """The file name of the script, or the name of the module; empty without a command."""
        return PurePosixPath(self.words[0].text).name if self.words else ""

    @property
    def path(self) -> str:
        """The program as it was written."""
        return self.words[0].text if self.words else ""

    @cached_property
    def arguments(self) -> Arguments:
        """The program's words as flags and others."""
        return arguments_of(self.words[1:])

    @cached_property
    def open_ended(self) -> bool:
        """Whether there may be further flags: a word that is known only when it runs, and is no flag's value, may stand for them."""
        words = [word.text for word in self.words]
        return self.left_out or any(word.startswith("$") and not before.startswith("-") for before, word in pairwise(words))

    @property
    def trains_nothing(self) -> str:
        """Why it trains nothing on a GPU whatever its program is; empty where it may."""
        visible = self.environment("CUDA_VISIBLE_DEVICES")
        if visible is not None and visible.text.split(",")[0].strip() in NO_DEVICES:
            return "CUDA_VISIBLE_DEVICES shows it no GPU"
        words = [*(word.text for word in self.words[1:]), "-"]
        alone = [word for word, behind in pairwise(words) if behind.startswith("-")]
        return next((f"{word} prints a text" for word in alone if word in PRINTED), "")

    def settings_of(self, path: str, reading: Reading) -> Settings:
        """The settings of a config file that the launch names; one that cannot be read is a warning, and says nothing."""
        try:
            return read_settings(self.files.text(path), path)
        except FileError as error:
            reading.warnings.append(f"{path} {error}: {NOT_READ}")
            return Settings()


class Reader(Protocol):
    """One format. It is stateless, opens files through the launch alone, and never raises for what a launch holds."""

    name: str

    def recognises(self, launch: Launch) -> bool:
        """Whether the launch is of this format, by its program, its launcher or the keys of its config."""

    def read(self, launch: Launch) -> Reading:
        """What the launch says; what is `around` it is merged by the caller."""
