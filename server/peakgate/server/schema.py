"""JSON Schema (draft 2020-12) of the job document, from the message's descriptor and the table of words."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from peakgate.memory.choices import CHOICES
from peakgate.v1.training_job_pb2 import TrainingJob

INTEGER_KINDS = frozenset({FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64})
LARGEST_INTEGER = 2**63 - 1

SHORT_FORMS: dict[str, dict[str, object]] = {
    "method.generation": {"const": "none"},
    "lora.targets": {"const": "all-linear"},
}
"""What a document may write in place of a mapping or a list."""


DOTTED = r"^[a-z_]+(\.[a-z0-9_]+)+$"
"""A key of the document that is the path of a field in its blocks."""


def job_schema() -> dict[str, object]:
    """The schema: types, words, and that exactly one kind of model is stated. Semantic checks stay with the service."""
    schema = _message(TrainingJob.DESCRIPTOR, "")
    schema["required"] = ["model"]
    schema["patternProperties"] = {DOTTED: {}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A training job", **schema}


def _message(descriptor: Descriptor, path: str) -> dict[str, object]:
    if descriptor.full_name == "google.protobuf.Struct":
        return {"type": "object"}
    properties = {field.name: _field(field, f"{path}.{field.name}" if path else field.name) for field in descriptor.fields}
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    for group in descriptor.oneofs:
        names = [field.name for field in group.fields]
        if len(names) > 1:  # an optional scalar is a group of its own
            schema["oneOf"] = [{"required": [name]} for name in names]
    return schema


def _field(field: FieldDescriptor, path: str) -> dict[str, object]:
    single = _message(field.message_type, path) if field.message_type is not None else _scalar(field, path)
    schema: dict[str, object] = {"type": "array", "items": single} if field.is_repeated else single
    short = SHORT_FORMS.get(path)
    return schema if short is None else {"anyOf": [schema, short]}


def _scalar(field: FieldDescriptor, path: str) -> dict[str, object]:
    if field.cpp_type in INTEGER_KINDS:
        return {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER}
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return {"type": "number"}
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"type": "boolean"}
    words = CHOICES.get(path)
    return {"type": "string"} if words is None else {"type": "string", "enum": list(words)}
