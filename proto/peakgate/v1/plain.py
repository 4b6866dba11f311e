"""Messages as plain dictionaries: the JSON form of answers and jobs (contract: 64-bit integers are numbers, defaults are kept)."""

from __future__ import annotations

from typing import TypeAlias, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.v1.training_job_pb2 import TrainingJob

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What JSON can say."""


_UNKNOWN_WHEN_ZERO = {"peakgate.v1.Suggestion.relative_step_time"}
"""Fields whose 0 means that nobody knows: JSON has a word for that."""

_ONLY_WHEN_SET = {"peakgate.v1.PredictResponse.try_anyway"}
"""Messages that answer what few ask: the form of every other answer knows nothing of them."""


def job_to_dict(job: TrainingJob) -> dict[str, Plain]:
    """The job document of `job`: only what was stated, under the document's own names."""
    return _stated(job)


def answer_to_dict(answer: Message) -> dict[str, Plain]:
    """Any message of an answer as a dictionary that `json.dumps` takes.

    Fields keep the proto's names. A field that was not set has its default value, and a message that was not set is written
    with its defaults, so that a reader finds every key; `try_anyway` alone is there only when a try was asked for. Enum values
    lose the prefix of their enum (VERDICT_ADMIT: ADMIT), times are RFC 3339 text or empty, a step time that was not estimated
    is null, a job inside an answer is its job document.
    """
    if isinstance(answer, TrainingJob):
        return _stated(answer)
    return {field.name: _field(answer, field) for field in descriptor_of(answer).fields if _is_written(answer, field)}


def descriptor_of(message: Message) -> Descriptor:
    """The descriptor of `message`; the stubs give it two classes, of which one describes both."""
    return cast("Descriptor", message.DESCRIPTOR)


def _is_written(message: Message, field: FieldDescriptor) -> bool:
    optional = field.has_presence and (field.message_type is None or field.full_name in _ONLY_WHEN_SET)
    return not optional or message.HasField(field.name)


def _field(message: Message, field: FieldDescriptor) -> Plain:
    value = getattr(message, field.name)
    if field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry:
        value_field = field.message_type.fields_by_name["value"]
        return {str(key): _one(value[key], value_field) for key in sorted(value)}
    if field.is_repeated:
        return [_one(each, field) for each in value]
    return _one(value, field)


def _one(value: object, field: FieldDescriptor) -> Plain:
    if value == 0 and field.full_name in _UNKNOWN_WHEN_ZERO:
        return None
    if isinstance(value, Message):
        return _message(value)
    if field.enum_type is not None and isinstance(value, int):
        return _enum_word(field, value)
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{field.full_name} has no JSON form")


def _message(value: Message) -> Plain:
    if isinstance(value, Value | Struct | ListValue):
        return plain_value(value)
    if isinstance(value, Timestamp | Duration):
        return value.ToJsonString() if value.ByteSize() else ""
    return answer_to_dict(value)


def _enum_word(field: FieldDescriptor, number: int) -> str:
    enum = field.enum_type
    if enum is None or number not in enum.values_by_number:
        return str(number)
    prefix = "".join(f"_{letter}" if letter.isupper() else letter for letter in enum.name).lstrip("_").upper() + "_"
    return enum.values_by_number[number].name.removeprefix(prefix)


def plain_value(value: Value | Struct | ListValue) -> Plain:
    """A protobuf value as Python data; a number without a fraction is an int, as it was in the JSON that it came from."""
    if isinstance(value, Struct):
        return {key: plain_value(each) for key, each in value.fields.items()}
    if isinstance(value, ListValue):
        return [plain_value(each) for each in value.values]
    match value.WhichOneof("kind"):
        case "number_value":
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return plain_value(value.struct_value)
        case "list_value":
            return plain_value(value.list_value)
        case _:
            return None


def _stated(message: Message) -> dict[str, Plain]:
    fields = message.ListFields()
    return {field.name: [_stated_one(each) for each in value] if field.is_repeated else _stated_one(value) for field, value in fields}


def _stated_one(value: object) -> Plain:
    if isinstance(value, Struct):
        return plain_value(value)
    if isinstance(value, Message):
        return _stated(value)
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")
