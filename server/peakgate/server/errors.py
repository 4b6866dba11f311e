"""Errors of the service: one root, and one table from reason to gRPC code and HTTP status."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from peakgate.memory.prediction import FieldError, JobError

DOMAIN = "peakgate.io"


@dataclass(frozen=True, slots=True)
class Code:
    """A gRPC status code with its number (google/rpc/code.proto) and the HTTP status that the same file maps it to."""

    name: str
    number: int
    http: int


INVALID_ARGUMENT = Code("INVALID_ARGUMENT", 3, 400)
NOT_FOUND = Code("NOT_FOUND", 5, 404)
ALREADY_EXISTS = Code("ALREADY_EXISTS", 6, 409)
FAILED_PRECONDITION = Code("FAILED_PRECONDITION", 9, 400)
INTERNAL = Code("INTERNAL", 13, 500)
UNAVAILABLE = Code("UNAVAILABLE", 14, 503)

CODES: dict[str, Code] = {
    "FIELD_INVALID": INVALID_ARGUMENT,
    "PARALLELISM_MISMATCH": INVALID_ARGUMENT,
    "MODEL_UNKNOWN": NOT_FOUND,
    "ACCELERATOR_UNKNOWN": NOT_FOUND,
    "PREDICTION_NOT_FOUND": NOT_FOUND,
    "CALIBRATION_NOT_FOUND": NOT_FOUND,
    "CALIBRATION_ONLY": FAILED_PRECONDITION,
    "HISTORY_TOO_LARGE": INVALID_ARGUMENT,
    "HISTORY_UNUSABLE": INVALID_ARGUMENT,
    "CALIBRATION_EMPTY": FAILED_PRECONDITION,
    "SHADOW_EXISTS": ALREADY_EXISTS,
    "OBSERVATION_NOT_FOUND": NOT_FOUND,
    "OBSERVATION_NOT_KEPT_OUT": FAILED_PRECONDITION,
    "OBSERVATION_UNUSABLE": FAILED_PRECONDITION,
    "SOLVE_UNBOUNDED": FAILED_PRECONDITION,
    "REQUEST_ID_REUSED": ALREADY_EXISTS,
    "PAGE_TOKEN_INVALID": INVALID_ARGUMENT,
    "BATCH_TOO_LARGE": INVALID_ARGUMENT,
    "DOCUMENT_TOO_LARGE": INVALID_ARGUMENT,
    "BODY_NOT_JSON": INVALID_ARGUMENT,
    "CONTENT_TYPE_UNSUPPORTED": INVALID_ARGUMENT,
    "SETTING_INVALID": FAILED_PRECONDITION,
    "STORE_UNAVAILABLE": UNAVAILABLE,
    "INTERNAL": INTERNAL,
}
"""ErrorInfo reason -> code. Part of the interface: rows are only added."""

HTTP_STATUS: dict[str, int] = {"DOCUMENT_TOO_LARGE": 413, "CONTENT_TYPE_UNSUPPORTED": 415}
"""Reasons for which HTTP knows a closer status than that of the gRPC code."""


class PeakgateError(Exception):
    """A request that could not be judged. Names every bad field, and in `hint` what to do."""

    def __init__(self, reason: str, message: str, *, fields: tuple[FieldError, ...] = (), hint: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.fields = fields
        self.hint = hint

    @property
    def code(self) -> Code:
        """The gRPC code of the reason."""
        return CODES[self.reason]

    @property
    def http_status(self) -> int:
        """The HTTP status of the reason."""
        return HTTP_STATUS.get(self.reason, self.code.http)


def field_error(path: str, description: str, *, reason: str = "FIELD_INVALID") -> PeakgateError:
    """An error about one field."""
    return PeakgateError(reason, f"{path}: {description}", fields=(FieldError(field=path, description=description),))


def fields_error(fields: tuple[FieldError, ...]) -> PeakgateError:
    """An error about several fields, of several kinds."""
    return PeakgateError("FIELD_INVALID", "; ".join(f"{each.field}: {each.description}" for each in fields), fields=fields)


def from_job_error(error: JobError) -> PeakgateError:
    """What the memory model refused, as an error of the service."""
    return PeakgateError(error.reason, str(error), fields=error.fields)


def internal_error(incident: str) -> PeakgateError:
    """A defect of the service: the text leaks nothing, the log has the rest under the incident's id."""
    return PeakgateError("INTERNAL", f"the service failed on this request; its log has the cause under {incident}")


def to_status(error: PeakgateError) -> status_pb2.Status:
    """google.rpc.Status with ErrorInfo, and with BadRequest when fields are named."""
    status = status_pb2.Status(code=error.code.number, message=error.message)
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN)
    if error.hint:
        info.metadata["hint"] = error.hint
    _pack(status.details.add(), info)
    if error.fields:
        violations = [error_details_pb2.BadRequest.FieldViolation(field=each.field, description=each.description) for each in error.fields]
        _pack(status.details.add(), error_details_pb2.BadRequest(field_violations=violations))
    return status


def _pack(target: any_pb2.Any, message: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest) -> None:
    target.Pack(message)


def to_json(error: PeakgateError) -> dict[str, object]:
    """The error object of HTTP and of the command line."""
    fields = [{"field": each.field, "description": each.description} for each in error.fields]
    return {"error": {"code": error.code.name, "reason": error.reason, "message": error.message, "fields": fields}}
