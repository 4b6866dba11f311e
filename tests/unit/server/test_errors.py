"""Errors on the wire."""

from __future__ import annotations

import re

import grpc
from google.rpc import error_details_pb2

from peakgate.memory.prediction import FieldError, JobError
from peakgate.server.errors import CODES, DOMAIN, PeakgateError, field_error, from_job_error, internal_error, to_json, to_status


def test_reasons_are_upper_case_words_and_codes_are_grpcs() -> None:
    """ErrorInfo: at most 63 characters of A to Z, 0 to 9 and underscores; names and numbers as grpc has them."""
    for reason, code in CODES.items():
        assert re.fullmatch(r"[A-Z][A-Z0-9_]{0,62}", reason)
        assert grpc.StatusCode[code.name].value[0] == code.number


def test_a_status_carries_reason_domain_hint_and_every_field() -> None:
    """A program reads the details and never the message."""
    fields = tuple(FieldError(field=name, description="is wrong") for name in ("a.b", "c"))
    status = to_status(PeakgateError("FIELD_INVALID", "two", fields=fields, hint="mend them"))
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(bad)
    assert (info.reason, info.domain, dict(info.metadata)) == ("FIELD_INVALID", DOMAIN, {"hint": "mend them"})
    assert [each.field for each in bad.field_violations] == ["a.b", "c"]


def test_what_the_memory_model_refuses_keeps_its_reason_and_fields() -> None:
    """An unknown GPU is NOT_FOUND with the nearest names in the description."""
    error = from_job_error(JobError("ACCELERATOR_UNKNOWN", (FieldError(field="gpu.type", description="nearest: h100-80gb"),)))
    assert (error.code.name, error.fields[0].field) == ("NOT_FOUND", "gpu.type")


def test_the_json_form_names_code_reason_message_and_fields() -> None:
    """The same object as the command line's."""
    want = {
        "error": {
            "code": "INVALID_ARGUMENT",
            "reason": "FIELD_INVALID",
            "message": "x: bad",
            "fields": [{"field": "x", "description": "bad"}],
        }
    }
    assert to_json(field_error("x", "bad")) == want


def test_an_internal_error_tells_nothing_but_an_incident() -> None:
    """The cause is in the log."""
    assert "abc" in internal_error("abc").message
    assert internal_error("abc").http_status == 500
