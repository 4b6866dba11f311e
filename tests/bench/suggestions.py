"""What is suggested for published jobs that ran out of memory: whether the first suggestion fits, and whether what others did is found.

A pair is a row that ran out of memory and a sibling that ran, whose documents differ in one part alone. Two kinds of evidence, then: the
service's own (the changed job, predicted again, is admitted) and the source's (a job with that field changed ran on that card).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from tests.bench.accuracy import Json, at, rows

from peakgate.calibration import Calibrator
from peakgate.server.convert import job_from_message
from peakgate.server.judge import Judge
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy
from peakgate.v1.document import parse_job
from peakgate.v1.plain import plain_value
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict
from peakgate.v1.prediction_service_pb2 import Shortfall

PARTS = ("batch", "attention", "checkpointing", "optimizer", "offload", "parallelism")
"""Parts of a job document in one of which the two rows of a pair differ."""

TRAINING_ITSELF = "batch.sequence_length"
"""A field of those parts that no word of `allow` lets a suggestion change: other text is trained on then."""

FOLLOWING = ("parallelism.shard_degree", "batch.gradient_accumulation_steps")
"""What follows from another field of the same part."""

FIRST = 3
"""Suggestions that a person reads."""


class Top(StrEnum):
    """What becomes of a row's first suggestion."""

    FITS = "the first suggestion fits"
    ADMITTED = "admitted as it is"
    NOT_COUNTED = "a part of the job is not counted, so nothing is known to fit"
    NOTHING = "no suggestion fits"
    FAILS = "the first suggestion does not fit after all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """The service's answer to a job and to its first suggestion."""

    answer: PredictResponse
    suggestions: tuple[Suggestion, ...]
    shortfall: Shortfall | None
    first: PredictResponse | None
    """The changed job, as a request of its own; None without a suggestion."""

    @property
    def top(self) -> Top:
        """What becomes of the first suggestion for a job that needs one."""
        if self.first is None or not self.suggestions[0].fits:
            return Top.NOTHING
        return Top.FITS if self.first.verdict == Verdict.VERDICT_ADMIT else Top.FAILS


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A row that ran out of memory, one that ran, and the paths in which their documents differ."""

    row: Json
    sibling: Json
    paths: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """Both ids."""
        return str(at(self.row, "id")), str(at(self.sibling, "id"))

    @property
    def alters_training(self) -> bool:
        """Whether the sibling trains on other text."""
        return TRAINING_ITSELF in self.paths

    @property
    def field(self) -> str:
        """The field that was changed: of degrees, and of batches, others follow from it."""
        return next(path for path in self.paths if path not in FOLLOWING)

    @property
    def change(self) -> str:
        """The field with both values."""
        path = TRAINING_ITSELF if self.alters_training else self.field
        return f"{path} {_word(at(self.row, f'job.{path}'))} → {_word(at(self.sibling, f'job.{path}'))}"


def out_of_memory() -> list[Json]:
    """The published rows that ran out of memory."""
    return [row for row in rows("published_jobs") if at(row, "outcome.kind") == "oom"]


def pairs() -> Iterator[Pair]:
    """Every pair; of siblings with the same document the first."""
    ran = [row for row in rows("published_jobs") if at(row, "outcome.kind") != "oom"]
    for row in out_of_memory():
        seen: list[Mapping[str, object]] = []
        for sibling in ran:
            flat = _flat(_job(sibling))
            paths = _differing(_flat(_job(row)), flat)
            parts = {path.partition(".")[0] for path in paths}
            if len(parts) == 1 and parts <= set(PARTS) and flat not in seen:
                seen.append(flat)
                yield Pair(row=row, sibling=sibling, paths=paths)


def _job(row: Json) -> Mapping[str, object]:
    job = at(row, "job")
    return {key: value for key, value in job.items() if key != "name"} if isinstance(job, Mapping) else {}


def _flat(document: Mapping[str, object], above: str = "") -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in document.items():
        out |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {above + key: value}
    return out


def _differing(one: Mapping[str, object], other: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path)))


def top(row: Json) -> Top:
    """What becomes of a row's first suggestion; whether it needs one and can have one is told without a search."""
    return unasked(row) or advised(row).top


def unasked(row: Json) -> Top | None:
    """Why nothing is searched for a row; None: a search may help."""
    judge = _judge()
    if judged(_job(row)).verdict == Verdict.VERDICT_ADMIT:
        return Top.ADMITTED
    return Top.NOT_COUNTED if judge.memory.predict(job_from_message(parse_job(_job(row)))).undecided else None


def advised(row: Json) -> Advised:
    """What the service suggests for a row, the answer that the command `peakgate suggest` prints."""
    return _advised(json.dumps(_job(row), sort_keys=True))


@lru_cache
def _judge() -> Judge:
    return Judge(memory_model(), Calibrator(epoch="bench").snapshot(), Policy())


@lru_cache(maxsize=64)
def _advised(text: str) -> Advised:
    found = _judge().advise(parse_job(json.loads(text)), "")
    first = judged(changed(json.loads(text), found.suggestions[0])) if found.suggestions else None
    return Advised(answer=found.answer, suggestions=found.suggestions, shortfall=found.shortfall, first=first)


def judged(document: Mapping[str, object]) -> PredictResponse:
    """The service's verdict on a job document."""
    return _judge().judge(parse_job(document).SerializeToString(deterministic=True)).answer


def changed(document: Mapping[str, object], suggestion: Suggestion) -> dict[str, object]:
    """The document with a suggestion's changes written into it, as a person would."""
    out = copy.deepcopy(dict(document))
    for path, value in suggestion.changes.items():
        *parts, name = path.split(".")
        part: dict[str, Any] = out
        for key in parts:
            part = part.setdefault(key, {})
        part[name] = plain_value(value)
    return out


def place(pair: Pair, suggestions: Sequence[Suggestion]) -> int:
    """Which suggestion changes the pair's field, counted from 1; 0: none."""
    return next((number for number, each in enumerate(suggestions, 1) if pair.field in each.changes), 0)


def words(suggestion: Suggestion) -> str:
    """A suggestion in a line: what it changes, what its step costs, and what it needs."""
    values = ", ".join(f"{path}={_word(plain_value(suggestion.changes[path]))}" for path in sorted(suggestion.changes))
    cost = f"{suggestion.relative_step_time:.2f} × the step, " if suggestion.relative_step_time else ""
    return f"{values} ({cost}{suggestion.bound_bytes / 1e9:.1f} GB{'' if suggestion.fits else ', not judged'})"


def _word(value: object) -> str:
    return "not stated" if value is None else value if isinstance(value, str) else json.dumps(value)


PAIR_HEAD = ("out of memory", "ran", "field", "place", "what is suggested")


def pair_line(pair: Pair, *, ask_all: bool) -> tuple[str, str, str, str, str]:
    """One line of the table of pairs. `ask_all` searches for rows as well that are admitted or not counted, which need or have no fit."""
    names, why = (*pair.names, pair.change), unasked(pair.row)
    if pair.alters_training:
        return *names, "–", f"nothing: other text would be trained on{_longest(pair.row) if why is None else ''}"
    if why is not None and not ask_all:
        return *names, "–", str(why)
    suggestions = advised(pair.row).suggestions
    found = place(pair, suggestions)
    return *names, str(found or "–"), words(suggestions[found - 1]) if found else "no suggestion changes this field"


def _longest(row: Json) -> str:
    """What a submitter gets who asks for it."""
    solved = _judge().advise(parse_job(_job(row)), TRAINING_ITSELF).solved
    return f"; `--solve {TRAINING_ITSELF}` answers {solved.value if solved.limit else 'that none fits'}"


def top_line(row: Json) -> tuple[str, str, str]:
    """One line of the table of rows that ran out of memory: id, what becomes of the first suggestion, its words or what is short."""
    name, found = str(at(row, "id")), advised(row)
    if found.suggestions:
        return name, str(top(row)), words(found.suggestions[0])
    short = f"{found.shortfall.bytes / 1e9:.1f} GB short with {found.shortfall.closest.title}" if found.shortfall else found.answer.reason
    return name, str(top(row)), short


def counts_line() -> str:
    """The figures in one line."""
    tops = [top(row) for row in out_of_memory()]
    admitted, uncounted, fitting = (tops.count(kind) for kind in (Top.ADMITTED, Top.NOT_COUNTED, Top.FITS))
    needy = [pair for pair in pairs() if unasked(pair.row) is None and not pair.alters_training]
    found = sum(0 < place(pair, advised(pair.row).suggestions) <= FIRST for pair in needy)
    return (
        f"Of {len(tops)} jobs that ran out of memory {admitted} are admitted as documented, and of {uncounted} a part is not counted. "
        f"Of the other {len(tops) - admitted - uncounted} the first suggestion, written into the document, is admitted in {fitting}; "
        f"of their {len(needy)} pairs the changed field is among the first three suggestions in {found}."
    )


def report() -> str:
    """Both tables and the figures."""
    lines = ["  ".join(line) for line in map(top_line, out_of_memory())]
    told = [" | ".join(pair_line(pair, ask_all=True)) for pair in pairs()]
    return "\n".join([*lines, "", " | ".join(PAIR_HEAD), *told, "", counts_line()])
