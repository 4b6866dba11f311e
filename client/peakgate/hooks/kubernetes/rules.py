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
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from peakgate.hooks.rules_file import yaml_word


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


AnyMode = Annotated[Mode, BeforeValidator(yaml_word)]


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
