"""Who is judged how: the operators' file gate.yaml, as data."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from peakgate.hooks.rules_file import yaml_word


class Mode(StrEnum):
    """off: not looked at; shadow: judged and written down; warn: told as well; enforce: a job that does not fit is refused."""

    off = "off"
    shadow = "shadow"
    warn = "warn"
    enforce = "enforce"


class WithoutAnswer(StrEnum):
    """What becomes of a job that cannot be judged because neither the service nor the one beside the gate answers."""

    allow = "allow"
    refuse = "refuse"


STRICTNESS = tuple(Mode)
TOLD = frozenset({Mode.warn, Mode.enforce})
"""Modes in which the submitter reads something."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | int) else value


AnyMode = Annotated[Mode, BeforeValidator(yaml_word)]
Names = Annotated[tuple[Annotated[str, BeforeValidator(str)], ...], BeforeValidator(_listed)]
"""One name or several."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Model):
    """Holds for a submission of which every stated kind of name is among those listed; a user is a name or a number."""

    partition: Names = ()
    account: Names = ()
    qos: Names = ()
    user: Names = ()
    mode: AnyMode | None = None
    without_answer: WithoutAnswer | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Rule:
        if not (self.partition or self.account or self.qos or self.user):
            raise ValueError("names no partition, account, qos or user; what holds for everybody stands outside the rules")
        if self.mode is None and self.without_answer is None:
            raise ValueError("sets neither mode nor without_answer")
        return self


class Override(_Model):
    """A word that admits a job against its verdict; `name` says in the journal whose it was."""

    name: str = Field(min_length=1)
    word: str = ""
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")

    @model_validator(mode="after")
    def _has_one_form(self) -> Override:
        if bool(self.word) == bool(self.sha256):
            raise ValueError("needs either word or sha256, the digest of it")
        return self

    def isyaml_word(self, told: str) -> bool:
        """Whether it is this word."""
        digest = hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()
        return hmac.compare_digest(digest, self.sha256 or hashlib.sha256(self.word.encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """What rules speak of: the partitions that a job may start in, and whose it is."""

    partitions: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """What holds for one submission."""

    mode: Mode
    without_answer: WithoutAnswer = WithoutAnswer.allow


class Rules(_Model):
    """The whole file. Of `rules` the first that holds for a partition and sets a thing sets it; then what stands outside them."""

    mode: AnyMode = Mode.shadow
    without_answer: WithoutAnswer = WithoutAnswer.allow
    judge_without_service: bool = True
    rules: tuple[Rule, ...] = ()
    exempt_accounts: Names = ()
    overrides: tuple[Override, ...] = ()

    def treatment(self, who: Who) -> Treatment:
        """The strictest of what holds for the partitions that a job may start in: a lax one beside it is no way round."""
        found = [self._in(partition, who) for partition in who.partitions or ("",)]
        refuses = any(each.without_answer is WithoutAnswer.refuse for each in found)
        return Treatment(
            mode=max((each.mode for each in found), key=STRICTNESS.index),
            without_answer=WithoutAnswer.refuse if refuses else WithoutAnswer.allow,
        )

    def _in(self, partition: str, who: Who) -> Treatment:
        holding = [rule for rule in self.rules if _holds(rule, partition, who)]
        return Treatment(
            mode=next((rule.mode for rule in holding if rule.mode is not None), self.mode),
            without_answer=next((rule.without_answer for rule in holding if rule.without_answer is not None), self.without_answer),
        )

    def is_exempt(self, account: str) -> bool:
        """Whether the jobs of an account are left alone."""
        return account in self.exempt_accounts

    def override_of(self, word: str) -> Override | None:
        """The override whose word it is."""
        return next((each for each in self.overrides if word and each.isyaml_word(word)), None)


def _holds(rule: Rule, partition: str, who: Who) -> bool:
    stated: Iterable[tuple[Sequence[str], Sequence[str]]] = (
        (rule.partition, (partition,)),
        (rule.account, (who.account,)),
        (rule.qos, (who.qos,)),
        (rule.user, who.users),
    )
    return all(not names or not set(names).isdisjoint(known) for names, known in stated)
