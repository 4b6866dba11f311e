"""The job document: YAML or JSON data to and from `TrainingJob`, strictly, with every bad field named at once.

This module knows shapes and types; what a value means (choice words, ranges, catalogue names) the service checks.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Struct, Value

from peakgate.v1.plain import Plain, answer_to_dict, descriptor_of, job_to_dict
from peakgate.v1.scalars import ScalarError, kind_of, number_of, scalar_of, text_of
from peakgate.v1.training_job_pb2 import TrainingJob

__all__ = ["DocumentError", "Plain", "answer_to_dict", "job_to_dict", "parse_job", "united"]

_UNREADABLE = -1
"""Stands in a message for a number that could not be read. No field takes it, so that nothing is concluded from a guess."""

_SHORT_MESSAGES = {"peakgate.v1.Method.generation": "mode"}
"""Field -> the member that a bare word sets: `generation: none`."""

_SHORT_LISTS = {"peakgate.v1.Lora.targets"}
"""Lists that a bare word may stand for: `targets: all-linear`."""

_MAX_DEPTH = 40
"""Levels of a config.json or profile; below protobuf's own limit of 100 messages, of which a level takes two."""


class DocumentError(Exception):
    """A document that is no job. `fields` holds (path, what is wrong and what to write) of every bad field, in document order.

    `job` is what could be read, for those who check the meaning of the rest.
    """

    def __init__(self, fields: Sequence[tuple[str, str]], job: TrainingJob) -> None:
        self.fields = tuple(fields)
        self.job = job
        super().__init__("; ".join(f"{path}: {description}" for path, description in self.fields))


def parse_job(document: Mapping[str, object]) -> TrainingJob:
    """The message that `document` (parsed YAML or JSON) means. A null is a field that was not stated. A key with dots is a path
    (`attention.implementation: flash`, as suggestions are written); it wins over what the blocks say.

    Raises DocumentError, which lists every unknown key (with the nearest known one), wrong type, number that is not finite
    or beyond 64 bits, and a model that is missing or stated twice.
    """
    job = TrainingJob()
    reader = _Reader()
    if not isinstance(document, Mapping):
        raise DocumentError([("job", f"is {kind_of(document)}, needs a mapping with a `model`")], job)
    document = _nested(document)
    reader.message(job, document, "")
    if not job.HasField("model") and not any(path == "model" or path.startswith("model.") for path, _ in reader.errors):
        reader.errors.append(("model", f"is missing, needs exactly one of {_kinds(descriptor_of(job.model))}"))
    if reader.errors:
        raise DocumentError(reader.errors, job)
    return job


def _nested(document: Mapping[Any, object]) -> dict[Any, object]:
    """The document with what its dotted keys state in the blocks; a part of a path that is no block stays for the reader to refuse."""
    out = {key: value for key, value in document.items() if not (isinstance(key, str) and "." in key)}
    for key, value in document.items():
        if isinstance(key, str) and "." in key:
            head, rest = key.split(".", 1)
            block = out.get(head)
            if block is not None and not isinstance(block, Mapping):
                out[key] = value
            else:
                out[head] = _nested({**(block or {}), rest: value})
    return out


def united(fields: Sequence[tuple[str, str]], more: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Bad fields of two checks of one document: of `more` only what lies apart from the earlier ones, which explain the rest."""
    paths = [path for path, _ in fields]
    return (*fields, *((path, text) for path, text in more if not any(_overlap(path, other) for other in paths)))


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer.startswith(shorter) and longer[len(shorter) :][:1] in ("", ".", "[")


class _Reader:
    """Walks a document beside the message's descriptor and collects what is wrong."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, str]] = []

    def message(self, message: Message, document: Mapping[Any, object], path: str) -> None:
        descriptor = descriptor_of(message)
        known = descriptor.fields_by_name
        for key, value in document.items():
            at = f"{path}.{key}" if path else str(key)
            if not isinstance(key, str) or key not in known:
                self._bad(at, _unknown(key, descriptor))
            elif value is not None:
                self._field(message, known[key], value, at)
        for oneof in descriptor.oneofs:
            if not oneof.name.startswith("_"):
                self._exactly_one(descriptor, document, path)

    def _exactly_one(self, descriptor: Descriptor, document: Mapping[Any, object], path: str) -> None:
        stated = [key for key, value in document.items() if key in descriptor.fields_by_name and value is not None]
        unknown = [key for key in document if key not in descriptor.fields_by_name]
        if len(stated) > 1:
            self._bad(path, f"states {' and '.join(map(str, stated))}, needs exactly one of {_kinds(descriptor)}")
        elif not stated and not unknown:
            self._bad(path, f"is empty, needs exactly one of {_kinds(descriptor)}")

    def _field(self, message: Message, field: FieldDescriptor, value: object, path: str) -> None:
        if field.is_repeated:
            self._list(message, field, value, path)
        elif field.message_type is not None:
            self._sub_message(message, field, value, path)
        else:
            scalar = self._scalar(field, value, path)
            if scalar is None and field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
                scalar = _UNREADABLE
            if scalar is not None:
                setattr(message, field.name, scalar)

    def _sub_message(self, message: Message, field: FieldDescriptor, value: object, path: str) -> None:
        child = getattr(message, field.name)
        short = _SHORT_MESSAGES.get(field.full_name)
        if short is not None and isinstance(value, str):
            setattr(child, short, value)
        elif not isinstance(value, Mapping):
            self._bad(path, f"is {kind_of(value)}, needs a mapping")
        elif isinstance(child, Struct):
            child.SetInParent()
            self._struct(child, value, path, 0)
        else:
            child.SetInParent()
            self.message(child, value, path)

    def _list(self, message: Message, field: FieldDescriptor, value: object, path: str) -> None:
        if field.full_name in _SHORT_LISTS and isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple):
            self._bad(path, f"is {kind_of(value)}, needs a list")
            return
        target = getattr(message, field.name)
        for index, each in enumerate(value):
            at = f"{path}[{index}]"
            if field.message_type is None:
                scalar = self._scalar(field, each, at)
                if scalar is not None:
                    target.append(scalar)
            elif isinstance(each, Mapping):
                self.message(target.add(), each, at)
            else:
                self._bad(at, f"is {kind_of(each)}, needs a mapping")

    def _scalar(self, field: FieldDescriptor, value: object, path: str) -> str | int | float | bool | None:
        try:
            return scalar_of(field, value)
        except ScalarError as error:
            self._bad(path, str(error))
            return None

    def _struct(self, struct: Struct, document: Mapping[Any, object], path: str, depth: int) -> None:
        for key, value in document.items():
            at = f"{path}.{key}"
            if isinstance(key, str):
                self._value(struct.fields[key], value, at, depth)
            else:
                self._bad(at, f"the key is {kind_of(key)}, needs text")

    def _value(self, target: Value, value: object, path: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            self._bad(path, f"is nested deeper than {_MAX_DEPTH} levels")
        elif isinstance(value, Mapping):
            target.struct_value.SetInParent()
            self._struct(target.struct_value, value, path, depth + 1)
        elif isinstance(value, list | tuple):
            target.list_value.SetInParent()
            self._values(target.list_value, value, path, depth + 1)
        else:
            self._leaf(target, value, path)

    def _values(self, target: ListValue, values: Sequence[object], path: str, depth: int) -> None:
        for index, each in enumerate(values):
            self._value(target.values.add(), each, f"{path}[{index}]", depth)

    def _leaf(self, target: Value, value: object, path: str) -> None:
        try:
            _set_leaf(target, value)
        except ScalarError as error:
            self._bad(path, str(error))

    def _bad(self, path: str, description: str) -> None:
        self.errors.append((path, description))


def _set_leaf(target: Value, value: object) -> None:
    match value:
        case None:
            target.null_value = NULL_VALUE
        case bool():
            target.bool_value = value
        case str():
            target.string_value = text_of(value)
        case int() | float():
            target.number_value = number_of(value)
        case _:
            raise ScalarError(f"is {kind_of(value)}, needs text, a number, true or false, a list or a mapping")


def _unknown(key: object, descriptor: Descriptor) -> str:
    known = [field.name for field in descriptor.fields]
    near = difflib.get_close_matches(str(key), known, n=1)
    return f"is not a field here, did you mean {near[0]}?" if near else f"is not a field here, known are {', '.join(known)}"


def _kinds(descriptor: Descriptor) -> str:
    return ", ".join(field.name for field in descriptor.oneofs_by_name["kind"].fields)
