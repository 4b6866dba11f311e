"""Files of an import: sacct's output, or a list of jobs with their predictions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from peakgate.client.errors import InputError
from peakgate.client.imports.job import ImportedJob
from peakgate.client.imports.joined import read_mapping
from peakgate.client.imports.sacct import read_sacct


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """Predictions by job, and how jobs ended where the file says it."""

    predictions: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[str, ImportedJob] = field(default_factory=dict)


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`. Raises InputError."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}", reason="FILE_UNREADABLE") from error


def read_job_list(path: str | None) -> JobList:
    """Lines of `JOB PREDICTION`, or sacct's own output, which also says how the jobs ended. Raises InputError."""
    if path is None:
        return JobList()
    text = read_text(path)
    if not (text.lstrip().startswith("{") or "|" in text.partition("\n")[0]):
        return JobList(predictions=read_mapping(text, where=path))
    jobs = read_sacct(text, where=path)
    attempts = Counter(each.job for each in jobs)
    return JobList(
        predictions={each.job: each.prediction for each in jobs if each.prediction},
        ends={each.job: each for each in jobs if each.event and attempts[each.job] == 1},
    )
