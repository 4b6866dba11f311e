"""The operators' file, read again whenever it changes; one that is broken leaves the last good one in force, and is said so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import yaml
from pydantic import ValidationError

from peakgate.hooks.slurm.rules import Rules

LARGEST_BYTES = 1 << 20
Stamp = tuple[int, int, int]


class RulesError(Exception):
    """A file that states no rules, in words for an operator."""


def read_rules(path: Path) -> Rules:
    """The rules of a file. Raises RulesError that names every fault."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise RulesError(f"{path}: {error.strerror or error}") from error
    if len(text) > LARGEST_BYTES:
        raise RulesError(f"{path} is larger than {LARGEST_BYTES} bytes")
    try:
        told = yaml.safe_load(text)
        return Rules.model_validate({} if told is None else told)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}" for each in error.errors()]
        raise RulesError(f"{path}: {'; '.join(faults)}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RulesError(f"{path} is no YAML: {' '.join(str(error).split())[:200]}") from error


class RulesFile:
    """`current` looks at the file's times at every call, which costs microseconds, and says through `tell` what became of a change."""

    def __init__(self, path: Path | None, tell: Callable[[str, str], None]) -> None:
        """Reads the file; without one every job is in shadow. Raises RulesError: a gate begins with rules that are whole."""
        self._path, self._tell = path, tell
        self._stamp = self._look()
        self._rules = read_rules(path) if path is not None else Rules()
        self.is_stale = False
        """Whether the file has a fault, so that earlier rules are in force."""

    def current(self) -> Rules:
        """The rules in force."""
        if self._path is None or (stamp := self._look()) == self._stamp:
            return self._rules
        self._stamp = stamp
        try:
            self._rules = read_rules(self._path)
            self.is_stale = False
            self._tell("info", f"{self._path} was read again")
        except RulesError as error:
            self.is_stale = True
            self._tell("error", f"{error}; the earlier rules stay in force")
        return self._rules

    def _look(self) -> Stamp | None:
        try:
            found = os.stat(self._path) if self._path is not None else None  # noqa: PTH116 - the same, at half the cost
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else None
