"""A job as another tool recorded it, and what became of it at the import."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

AVERAGED, CENSORED, SEVERAL = "averaged", "censored", "several"
FLAGS = (AVERAGED, CENSORED, SEVERAL)
"""Words of the telemetry service: the figure is the mean of several GPUs; nobody said how the job ended; it is of several trainings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPeak:
    """The highest memory on one GPU. Times are seconds since the epoch; `flags` are words of FLAGS."""

    node: str
    gpu_uuid: str
    peak_bytes: int
    first_time: float
    last_time: float
    peak_time: float
    gpu_name: str = ""
    samples: int = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedJob:
    """One attempt of a job. `prediction` is empty when nothing joins it to one; `problem` says why it cannot be taken at all."""

    source: str
    cluster: str
    job: str
    restart: int = 0
    prediction: str = ""
    event: str = ""
    """finished, failed or cancelled; empty: it has not ended."""
    end_time: float = 0.0
    exit_code: int | None = None
    signal: int | None = None
    peaks: tuple[ImportedPeak, ...] = ()
    problem: str = ""


class Fate(StrEnum):
    """What became of a job."""

    LEARNED = "learned"
    KEPT_OUT = "kept out"
    STORED = "stored"
    LEFT_OUT = "left out"
    NOT_JOINED = "not joined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A job and what became of it. `kind` is that of its observation, `why` a line for a person."""

    job: ImportedJob
    fate: Fate
    kind: str = ""
    why: str = ""
