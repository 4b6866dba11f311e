"""TrainingJob message -> the memory model's Job, by field name: the dataclasses mirror the message, so no field is named here."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Union, cast, get_args, get_origin, get_type_hints

from google.protobuf import struct_pb2
from google.protobuf.message import Message

from peakgate.memory.job import Job
from peakgate.memory.prediction import FieldError
from peakgate.server.errors import fields_error
from peakgate.v1.training_job_pb2 import TrainingJob

Setter = Callable[[Message, str, list[FieldError]], object]


def job_from_message(message: TrainingJob) -> Job:
    """The job as stated: unset fields are None, lists are tuples, a Struct is a plain dict.

    Raises FIELD_INVALID that lists a missing model and every number that is not finite.
    """
    job, problems = read_message(message)
    if problems:
        raise fields_error(problems)
    return job


def read_message(message: TrainingJob) -> tuple[Job, tuple[FieldError, ...]]:
    """The same with what is wrong beside it; a number that is not finite is 0 in the job."""
    problems: list[FieldError] = []
    if message.model.WhichOneof("kind") is None:
        words = "preset, hf_config, transformer, operations, profile or parameters"
        problems.append(FieldError(field="model", description=f"is missing: state exactly one of {words}"))
    return cast("Job", _build(Job, message, "", problems)), tuple(problems)


def plain_struct(struct: struct_pb2.Struct, path: str, problems: list[FieldError]) -> dict[str, object]:
    """A Struct as a dict. Its numbers are doubles on the wire, so an integral one becomes an int again."""
    return {key: _plain_value(value, f"{path}.{key}", problems) for key, value in struct.fields.items()}


def _plain_value(value: struct_pb2.Value, path: str, problems: list[FieldError]) -> object:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return plain_struct(value.struct_value, path, problems)
    if kind == "list_value":
        return [_plain_value(each, f"{path}[{index}]", problems) for index, each in enumerate(value.list_value.values)]
    if kind == "number_value":
        return plain_number(_finite(value.number_value, path, problems))
    if kind == "string_value":
        return value.string_value
    return value.bool_value if kind == "bool_value" else None


def plain_number(number: float) -> int | float:
    """An int where the double is integral."""
    return int(number) if number.is_integer() else number


def _finite(number: float, path: str, problems: list[FieldError]) -> float:
    if math.isfinite(number):
        return number
    problems.append(FieldError(field=path, description=f"is {number}; state a finite number"))
    return 0.0


def _build(kind: type, message: Message, path: str, problems: list[FieldError]) -> object:
    values = {name: read(message, f"{path}.{name}" if path else name, problems) for name, read in _readers(kind)}
    return kind(**values)


@cache
def _readers(kind: type) -> tuple[tuple[str, Setter], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _reader(field.name, hints[field.name])) for field in dataclasses.fields(kind))


def _reader(name: str, hint: object) -> Setter:
    optional, inner = _strip_none(hint)
    if get_origin(inner) is tuple:
        return _list_reader(name, get_args(inner)[0])
    if get_origin(inner) is Mapping:
        return lambda message, path, problems: plain_struct(getattr(message, name), path, problems) if message.HasField(name) else None
    if dataclasses.is_dataclass(inner):
        kind = cast("type", inner)
        if optional:
            return lambda message, path, problems: _build(kind, getattr(message, name), path, problems) if message.HasField(name) else None
        return lambda message, path, problems: _build(kind, getattr(message, name), path, problems)
    return _scalar_reader(name, optional=optional, is_float=inner is float)


def _scalar_reader(name: str, *, optional: bool, is_float: bool) -> Setter:
    def read(message: Message, path: str, problems: list[FieldError]) -> object:
        if optional and not message.HasField(name):
            return None
        value: object = getattr(message, name)
        return _finite(cast("float", value), path, problems) if is_float else value

    return read


def _list_reader(name: str, element: object) -> Setter:
    def read(message: Message, path: str, problems: list[FieldError]) -> object:
        values = cast("Iterable[object]", getattr(message, name))
        if not dataclasses.is_dataclass(element):
            return tuple(values)
        kind = cast("type", element)
        return tuple(_build(kind, cast("Message", each), f"{path}[{index}]", problems) for index, each in enumerate(values))

    return read


def _strip_none(hint: object) -> tuple[bool, object]:
    if get_origin(hint) not in (Union, types.UnionType):
        return False, hint
    inner = [each for each in get_args(hint) if each is not type(None)]
    return True, inner[0]
