"""`sacct --json`: one object a job, with its steps. What a version wraps in {set, infinite, number} another gives plainly."""

from __future__ import annotations

import json

from peakgate.client.errors import InputError
from peakgate.client.imports.slurm_record import Record, Step
from peakgate.client.imports.slurm_words import GPU_MEMORY, event_of, gpus_of

Json = object


def records_of_json(text: str, *, where: str) -> list[Record]:
    """The jobs, each with its steps. Raises InputError for a text that is no such document."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: is no JSON: {error}") from error
    jobs = _at(document, "jobs")
    if not isinstance(jobs, list):
        raise InputError(f"{where}: has no list `jobs`; make the file with: sacct --allusers --json")
    return [_record(job) for job in jobs]


def _record(job: Json) -> Record:
    restarts = _at(job, "restart_cnt")
    return Record(
        cluster=_text(_at(job, "cluster")),
        job=str(_number(_at(job, "job_id")) or ""),
        event=event_of(_state(_at(job, "state", "current"))),
        start_time=float(_number(_at(job, "time", "start")) or 0),
        end_time=float(_number(_at(job, "time", "end")) or 0),
        restart=_number(restarts),
        exit_code=_number(_at(job, "exit_code", "return_code")),
        signal=_number(_at(job, "exit_code", "signal", "id")) or _number(_at(job, "exit_code", "signal", "signal_id")) or None,
        gpus=gpus_of(_amounts(_at(job, "tres", "allocated"))),
        comments=(_text(_at(job, "comment", "administrator")), _text(_at(job, "comment", "job"))),
        steps=tuple(_step(step) for step in _list(_at(job, "steps"))),
    )


def _step(step: Json) -> Step:
    most = next((each for each in _list(_at(step, "tres", "requested", "max")) if _name(each) == GPU_MEMORY), {})
    allocated = _amounts(_at(step, "tres", "allocated"))
    return Step(
        name=_step_name(step),
        tasks=_number(_at(step, "tasks", "count")) or 1,
        gpus=gpus_of(allocated),
        nodes=int(allocated.get("node", "0")),
        gpu_memory_bytes=max(0, _number(_at(most, "count")) or 0),
        node=_text(_at(most, "node")),
        task=str(_number(_at(most, "task")) or 0),
    )


def _step_name(step: Json) -> str:
    """`batch` of `123.batch`; newer versions give the parts of the id, and always a name."""
    identity = _at(step, "step", "id")
    if isinstance(identity, str):
        return identity.rpartition(".")[2]
    return str(_at(identity, "step_id") or _at(step, "step", "name") or "0")


def _at(value: Json, *path: str) -> Json:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _state(value: Json) -> str:
    """One word, or a list of the state and its flags."""
    return _text(value[0]) if isinstance(value, list) and value else _text(value)


def _number(value: Json) -> int | None:
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set", True) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name(tres: Json) -> str:
    kind, name = _text(_at(tres, "type")), _text(_at(tres, "name"))
    return f"{kind}/{name}" if name else kind


def _amounts(tres: Json) -> dict[str, str]:
    return {_name(each): str(_number(_at(each, "count")) or 0) for each in _list(tres)}
