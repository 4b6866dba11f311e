"""Who is judged how: the operators' file, as data.

mode: warn                      # off audit warn enforce: what holds for a namespace that no rule names
labels: stricter                # what a label peakgate.io/mode of a workload or of its namespace may do: nothing, stricter, any
judge_without_service: true
namespaces:                     # the first rule that names a namespace holds
  - {names: ["team-*"], mode: enforce}
overrides: {groups: [sre], users: [alice]}     # who may write peakgate.io/override
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError


class Mode(StrEnum):
    """off: not looked at; audit: judged, for the audit log and metrics alone; warn: told as well; enforce: what does not fit is denied."""

    off = "off"
    audit = "audit"
    warn = "warn"
    enforce = "enforce"


class Labels(StrEnum):
    """What a label can change of the file's mode."""

    nothing = "nothing"
    stricter = "stricter"
    any = "any"


STRICTNESS = tuple(Mode)
TOLD = frozenset({Mode.warn, Mode.enforce})
"""Modes in which the submitter reads something."""

LARGEST_BYTES = 1 << 20


class RulesError(Exception):
    """A file that states no rules, in words for an operator."""


def _word(value: object) -> object:
    return "off" if value is False else value  # what YAML makes of a bare `off`


AnyMode = Annotated[Mode, BeforeValidator(_word)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Namespaces(_Model):
    """A mode for namespaces; a name may hold * and ?."""

    names: tuple[str, ...] = Field(min_length=1)
    mode: AnyMode


class Overriders(_Model):
    """Who may override a verdict."""

    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


class Rules(_Model):
    """The whole file."""

    mode: AnyMode = Mode.warn
    labels: Labels = Labels.stricter
    judge_without_service: bool = True
    namespaces: tuple[Namespaces, ...] = ()
    overrides: Overriders = Overriders()

    def mode_of(self, namespace: str, labels: Iterable[str] = ()) -> Mode:
        """The mode in a namespace; `labels`: the modes that labels wish for, the nearest first. Where they may only make it stricter the
        strictest holds, so that a workload's label is no way round its namespace's."""
        named = next((rule.mode for rule in self.namespaces if any(fnmatchcase(namespace, each) for each in rule.names)), self.mode)
        wished = [Mode(each) for each in labels if each in set(Mode)]
        if not wished or self.labels is Labels.nothing:
            return named
        return wished[0] if self.labels is Labels.any else max(named, *wished, key=STRICTNESS.index)

    def may_override(self, user: str, groups: Iterable[str]) -> bool:
        """Whether somebody's override counts."""
        return user in self.overrides.users or not set(self.overrides.groups).isdisjoint(groups)


def read_rules(path: Path) -> Rules:
    """The rules of a file. Raises RulesError that names every fault."""
    try:
        with path.open("rb") as file:
            told = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise RulesError(f"{path}: {error.strerror or error}") from error
    if len(told) > LARGEST_BYTES:
        raise RulesError(f"{path} is larger than {LARGEST_BYTES} bytes")
    try:
        document = yaml.safe_load(told)
        return Rules.model_validate({} if document is None else document)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}" for each in error.errors()]
        raise RulesError(f"{path}: {'; '.join(faults)}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RulesError(f"{path} is no YAML: {' '.join(str(error).split())[:200]}") from error
