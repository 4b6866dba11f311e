"""The line protocol between the controller's Lua and the gate: a line of JSON in, a few plain lines out, which Lua reads without a library.

A request: `{"v": 1, "op": "submit" or "modify", "uid": …, "cluster": …, "default_partition": …, "fields": {…}, "record": {…}, "script": …,
"argv": […], "env": {…}}`; names of fields are those of Slurm's job_desc, and of job_rec in `record`. A reply: `ALLOW ID`, `ALLOW unchecked`
or `ALLOW -`, or `DENY WORD`; then any of `SET FIELD VALUE` and `SAY TEXT`; then `END`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.hooks.slurm.fields import RECORD

VERSION = 1
MOST_REQUEST_BYTES = 1 << 20
"""64 KiB of a script whose every byte is escaped six times, and what is attached."""
MOST_REPLY_BYTES = 8192
LONGEST_SAID = 300
MOST_SAID = 8

NOTHING = "-"
"""In place of an id: there was nothing to check, and no stamp is left."""
GRES, ACCESS = "gres", "access"
"""Words of a refusal: the request is too large for its cards; it cannot be checked where it must be."""

SUBMIT, MODIFY = "submit", "modify"
Scalar = str | int | float


class WireError(Exception):
    """A request that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One submission, or one change of a job, whose earlier state is `record`."""

    operation: str
    uid: int
    cluster: str = ""
    default_partition: str = ""
    fields: Mapping[str, Scalar] = field(default_factory=dict)
    record: Mapping[str, Scalar] = field(default_factory=dict)
    script: str = ""
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def flat(self) -> dict[str, object]:
        """The fields as submission.py reads them: those of the job as it was with `job_rec.` before their names."""
        before = {f"{RECORD}{name}": value for name, value in self.record.items()}
        return {"default_partition": self.default_partition, **self.fields, **before}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`word`: of an admission the stamp's value, of a refusal its kind. `sets`: fields that are changed to steer the job."""

    admits: bool = True
    word: str = NOTHING
    says: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The lines; text that would break them is made plain, what is too long is cut."""
        lines = [f"{'ALLOW' if self.admits else 'DENY'} {self.word}"]
        lines += [f"SET {name} {value}" for name, value in self.sets.items() if _is_word(name) and _is_word(value)]
        lines += [f"SAY {_plain(text)}" for text in self.says[:MOST_SAID]]
        content = "\n".join([*lines, "END", ""]).encode()
        return content if len(content) <= MOST_REPLY_BYTES else f"{lines[0]}\nEND\n".encode()


def parse_request(line: bytes) -> Request:
    """The request of a line; bytes that are no UTF-8 are kept as surrogates. Raises WireError."""
    try:
        told = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise WireError("the request is no JSON") from error
    if not isinstance(told, dict) or told.get("v") != VERSION:
        raise WireError(f"the request is none of version {VERSION}: peakgate.lua and the gate are of different releases")
    if told.get("op") not in (SUBMIT, MODIFY) or type(told.get("uid")) is not int:
        raise WireError("the request names no operation or no user")
    argv = told.get("argv")
    return Request(
        operation=told["op"],
        uid=told["uid"],
        cluster=_text(told.get("cluster")),
        default_partition=_text(told.get("default_partition")),
        fields=_scalars(told.get("fields")),
        record=_scalars(told.get("record")),
        script=_text(told.get("script")),
        argv=tuple(map(_text, argv)) if isinstance(argv, list) else (),
        environment={name: value for name, value in _scalars(told.get("env")).items() if isinstance(value, str)},
    )


def _scalars(value: object) -> dict[str, Scalar]:
    if not isinstance(value, dict):
        return {}
    return {name: each for name, each in value.items() if isinstance(each, str | int | float) and not isinstance(each, bool)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_word(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _plain(text: str) -> str:
    line = "".join(char if char.isprintable() else " " for char in text)
    return line if len(line) <= LONGEST_SAID else f"{line[: LONGEST_SAID - 1]}…"
