"""Jobs out of Slurm's accounting: `sacct --json`, or the columns of `sacct -P`.

Its figure of a task is summed over the task's GPUs and sampled every half minute or so, so it is of the lowest class. Of a task with one
GPU it is that GPU's; of one with several only their mean is known, which the worst of them had at least.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from peakgate.client.errors import InputError
from peakgate.client.imports.job import AVERAGED, SEVERAL, ImportedJob, ImportedPeak
from peakgate.client.imports.joined import prediction_of_comment
from peakgate.client.imports.sacct_json import records_of_json
from peakgate.client.imports.sacct_text import records_of_text
from peakgate.client.imports.slurm_record import Record, Step

SOURCE = "slurm"
OUTSIDE_STEP = "extern"
"""The step that only holds the allocation."""

NOT_IN_UUID = re.compile(r"[^0-9A-Za-z_-]")
"""Slurm does not say which GPU it was; the name that stands for it may hold nothing of these."""


def read_sacct(text: str, *, where: str, mapping: Mapping[str, str] | None = None) -> list[ImportedJob]:
    """The jobs in sacct's output. `mapping` (job to prediction) goes before what a comment says. Raises InputError for another file."""
    records = records_of_json(text, where=where) if text.lstrip().startswith("{") else records_of_text(text, where=where)
    if not records:
        raise InputError(f"{where}: holds no job")
    return [_job(record, mapping or {}) for record in _numbered(records)]


def _numbered(records: Iterable[Record]) -> list[Record]:
    """Attempts of one job (`sacct --duplicates`) numbered by their start where the restarts are not said."""
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for record in sorted(records, key=lambda each: (each.cluster, each.job, each.start_time)):
        earlier = seen.get((record.cluster, record.job), 0)
        seen[record.cluster, record.job] = earlier + 1
        numbered.append(record if record.restart is not None else replace(record, restart=earlier))
    return numbered


def _job(record: Record, mapping: Mapping[str, str]) -> ImportedJob:
    steps = [step for step in record.steps if step.name != OUTSIDE_STEP and step.gpu_memory_bytes > 0]
    problem = record.problem or ("" if record.event else "has not ended") or _problem(record, steps)
    return ImportedJob(
        source=SOURCE,
        cluster=record.cluster,
        job=record.job,
        restart=record.restart or 0,
        prediction=mapping.get(record.job) or prediction_of_comment(*record.comments),
        event=record.event,
        end_time=record.end_time,
        exit_code=record.exit_code,
        signal=record.signal,
        peaks=() if problem else tuple(_peak(record, step, several=len(steps) > 1) for step in steps),
        problem=problem,
    )


def _problem(record: Record, steps: list[Step]) -> str:
    if not steps:
        return "no step has a figure of gres/gpumem: is it in AccountingStorageTRES, and JobAcctGather on?"
    for step in steps:
        gpus = step.gpus or record.gpus
        if not gpus:
            return "how many GPUs it had is not said: the output needs AllocTRES with gres/gpu"
        if not step.shares:
            return "on how many nodes it ran is not said: the output needs AllocTRES with node"
        if step.shares > gpus:
            return f"{step.tasks} tasks of step {step.name} shared {gpus} GPUs, so the figure of a task is not that of a GPU"
        if not step.node:
            return "the node of the highest task is not said: the output needs TRESUsageInMaxNode"
    return ""


def _peak(record: Record, step: Step, *, several: bool) -> ImportedPeak:
    gpus_of_task = math.ceil((step.gpus or record.gpus) / step.shares)
    averaged = (AVERAGED,) if gpus_of_task > 1 else ()
    return ImportedPeak(
        node=step.node,
        gpu_uuid=NOT_IN_UUID.sub("_", f"GPU-of-{'node' if step.is_of_node else f'task-{step.task or 0}'}-of-step-{step.name}"),
        peak_bytes=step.gpu_memory_bytes // gpus_of_task,
        first_time=record.start_time,
        last_time=record.end_time,
        peak_time=record.end_time,
        flags=averaged + ((SEVERAL,) if several else ()),
    )
