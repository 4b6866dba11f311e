"""The columns of `sacct -P` or `-p`: a line of names, then a line for each job and each of its steps."""

from __future__ import annotations

from peakgate.client.errors import InputError
from peakgate.client.imports.slurm_record import Record, Step
from peakgate.client.imports.slurm_words import GPU_MEMORY, bytes_of, event_of, exit_of, gpus_of, moment_of, tres_of

NEEDED = ("JobID", "State", "Start", "End", "NTasks", "AllocTRES", "TRESUsageInMax", "TRESUsageInMaxNode")
USED = ("JobIDRaw", "Cluster", "Restarts", "ExitCode", "TRESUsageInMaxTask", "AdminComment", "Comment")
SPELLED = {name.lower(): name for name in (*NEEDED, *USED)}
COMMAND = "sacct --allusers --parsable2 --starttime=now-7days --format=" + ",".join((*NEEDED, *USED))
"""What makes the file; without a start sacct begins at midnight. Older ones have no `Restarts`: attempts are then told apart by start."""


def records_of_text(text: str, *, where: str) -> list[Record]:
    """The jobs, each with its steps. Raises InputError when the first line does not name the columns that are needed."""
    lines = [line for line in text.splitlines() if line.strip()]
    names = [SPELLED.get(name.lower(), name) for name in lines[0].split("|")] if lines else []
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InputError(f"{where}: its first line does not name {', '.join(missing)}; make the file with: {COMMAND}")
    rows = [dict(zip(names, line.split("|"), strict=False)) for line in lines[1:]]
    records: list[tuple[dict[str, str], list[dict[str, str]]]] = []
    for row in rows:
        if "." not in _identity(row):
            records.append((row, []))
        elif records and _identity(row).partition(".")[0] == _identity(records[-1][0]):
            records[-1][1].append(row)
    return [_record(row, steps) for row, steps in records]


def _identity(row: dict[str, str]) -> str:
    """JobIDRaw names the elements of an array as the job itself sees them (SLURM_JOB_ID)."""
    return row.get("JobIDRaw") or row["JobID"]


def _record(row: dict[str, str], steps: list[dict[str, str]]) -> Record:
    exit_code, signal = exit_of(row.get("ExitCode", ""))
    restarts = row.get("Restarts", "")
    found, problem = _steps(steps)
    return Record(
        cluster=row.get("Cluster", ""),
        job=_identity(row),
        event=event_of(row.get("State", "")),
        start_time=moment_of(row.get("Start", "")),
        end_time=moment_of(row.get("End", "")),
        restart=int(restarts) if restarts.isdigit() else None,
        exit_code=exit_code,
        signal=signal,
        gpus=gpus_of(tres_of(row.get("AllocTRES", ""))),
        comments=(row.get("AdminComment", ""), row.get("Comment", "")),
        steps=found,
        problem=problem,
    )


def _steps(rows: list[dict[str, str]]) -> tuple[tuple[Step, ...], str]:
    try:
        return tuple(_step(row) for row in rows), ""
    except ValueError as error:
        return (), str(error)


def _step(row: dict[str, str]) -> Step:
    tasks, allocated = row.get("NTasks", ""), tres_of(row.get("AllocTRES", ""))
    nodes = allocated.get("node", "")
    return Step(
        name=_identity(row).partition(".")[2],
        tasks=int(tasks) if tasks.isdigit() and int(tasks) else 1,
        gpus=gpus_of(allocated),
        nodes=int(nodes) if nodes.isdigit() else 0,
        gpu_memory_bytes=bytes_of(tres_of(row.get("TRESUsageInMax", "")).get(GPU_MEMORY, "0")),
        node=tres_of(row.get("TRESUsageInMaxNode", "")).get(GPU_MEMORY, ""),
        task=tres_of(row.get("TRESUsageInMaxTask", "")).get(GPU_MEMORY, ""),
    )
