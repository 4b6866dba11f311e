"""One root for everything that a caller of the client can be told, with the exit status of the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # an error is imported by every verb, also by those that never call the service
    import grpc

    from peakgate.v1.document import Plain
    from peakgate.v1.training_job_pb2 import TrainingJob

BAD_INPUT_STATUS = 2
UNAVAILABLE_STATUS = 4

_BAD_INPUT_CODES = frozenset(
    {"INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION", "OUT_OF_RANGE", "PERMISSION_DENIED", "UNAUTHENTICATED"}
)
"""gRPC codes that a repeat of the same call would give again; every other one is the service's state."""


class PeakgateError(Exception):
    """A job that could not be judged, or a call that failed.

    `code` is the gRPC code's name, `reason` an upper-case word, `fields` (path, what is wrong) of each bad field.
    """

    def __init__(self, message: str, *, code: str, reason: str, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.fields = tuple(fields)

    @property
    def exit_status(self) -> int:
        """2: the input; 4: the service."""
        return BAD_INPUT_STATUS if self.code in _BAD_INPUT_CODES else UNAVAILABLE_STATUS

    def as_dict(self) -> dict[str, Plain]:
        """The error object that stands in a job's place."""
        fields: list[Plain] = [{"field": path, "description": description} for path, description in self.fields]
        return {"error": {"code": self.code, "reason": self.reason, "message": self.message, "fields": fields}}


class InputError(PeakgateError):
    """Input that never reached the service: a file that cannot be read, or a document that is no job."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "DOCUMENT_INVALID",
        fields: Sequence[tuple[str, str]] = (),
        readable: TrainingJob | None = None,
    ) -> None:
        super().__init__(message, code="INVALID_ARGUMENT", reason=reason, fields=fields)
        self.readable = readable
        """What could be read of the job, so that the service can name the fields that have no meaning as well."""

    @classmethod
    def from_fields(cls, fields: Sequence[tuple[str, str]], readable: TrainingJob | None) -> InputError:
        """An error about these fields of a document."""
        count = len(fields)
        message = f"the document is no job: {count} bad field{'s' if count != 1 else ''}"
        return cls(message, reason="FIELD_INVALID", fields=fields, readable=readable)

    def completed(self, more: Sequence[tuple[str, str]]) -> InputError:
        """The same with what the service found beside it."""
        from peakgate.v1.document import united

        fields = united(self.fields, more)
        return InputError.from_fields(fields, None) if len(fields) > len(self.fields) else self


class ServiceError(PeakgateError):
    """An error that a call came back with."""

    @classmethod
    def from_call(cls, error: grpc.RpcError) -> ServiceError:
        """Reads google.rpc.ErrorInfo and BadRequest out of a failed call; without them the code's name is the reason."""
        call = cast("grpc.Call", error)  # what grpc raises is both; its stubs know only one
        reason, fields = _details(call)
        message = call.details() or str(error)
        if call.code().name == "UNAVAILABLE" and not reason:
            message = f"the service cannot be reached ({message}); start it with `peakgate serve`, or name another with --server"
        code = call.code().name
        if code == "DEADLINE_EXCEEDED" and not reason:
            message = f"the service did not answer in time ({message}); it, or its database, may be overloaded or stopped"
        if code == "RESOURCE_EXHAUSTED" and not reason and "larger than max" in message:  # gRPC itself, which knows no reasons
            code, reason = "INVALID_ARGUMENT", "DOCUMENT_TOO_LARGE"
        return cls(message, code=code, reason=reason or code, fields=fields)


def _details(call: grpc.Call) -> tuple[str, list[tuple[str, str]]]:
    from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
    from google.rpc.status_pb2 import Status

    status, info, bad = Status(), ErrorInfo(), BadRequest()
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            status.MergeFromString(value)
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad)
    return info.reason, [(violation.field, violation.description) for violation in bad.field_violations]
