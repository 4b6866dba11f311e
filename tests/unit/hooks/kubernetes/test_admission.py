"""AdmissionReviews as data, and the answers to them."""

from __future__ import annotations

import base64
import json

import pytest
from tests.admission_reviews import a_review, a_workload

from peakgate.hooks.kubernetes.admission import Answer, ReviewError, one_line, parse_review, response_of

REVIEW = a_review(a_workload("RayJob"), kind="RayJob", user="system:serviceaccount:a:b", groups=["x", "y"], dry_run=True)


def test_a_review_is_read() -> None:
    """Every field that is used."""
    found = parse_review(json.dumps(REVIEW).encode())
    assert (found.group, found.kind, found.operation, found.namespace, found.name) == ("ray.io", "RayJob", "CREATE", "team-a", "x1")
    assert (found.user, found.groups, found.is_dry_run) == ("system:serviceaccount:a:b", ("x", "y"), True)
    assert found.object_uid == REVIEW["request"]["object"]["metadata"]["uid"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
     b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":5}}',
     b'{"kind":"AdmissionReview","apiVersion":"v1","request":{"uid":"a"}}'],
)  # fmt: skip
def test_what_is_no_review_is_refused(body: bytes) -> None:
    """Without its content in the word."""
    with pytest.raises(ReviewError, match="the body is no"):
        parse_review(body)


def test_fields_of_the_wrong_kind_are_empty() -> None:
    """Whoever sends them."""
    request = {"uid": "u", "kind": 5, "userInfo": [], "object": "x", "namespace": {}, "dryRun": "true", "name": None}
    found = parse_review(json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode())
    assert (found.kind, found.user, found.object, found.namespace, found.is_dry_run, found.groups) == ("", "", {}, "", False, ())


@pytest.mark.parametrize(("text", "want"), [(" a \n b\t", "a b"), ("x" * 999, "x" * 256), ("\ud800", "?"), ("", "")])
def test_names_are_one_line_that_can_be_printed(text: str, want: str) -> None:
    """As the service takes them."""
    assert one_line(text) == want


def test_an_answer_is_written() -> None:
    """Denied with 403; warnings no longer than the API server takes; a patch in base64."""
    admission = parse_review(json.dumps(REVIEW).encode())
    denied = json.loads(response_of(admission, Answer(is_allowed=False, message="no", warnings=("w" * 500,), audit={"a": "b"})))
    assert (denied["apiVersion"], denied["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert denied["response"] == {
        "uid": admission.uid,
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "no"},
        "warnings": ["w" * 256],
        "auditAnnotations": {"a": "b"},
    }
    operation = {"op": "add", "path": "/a", "value": 1}
    patched = json.loads(response_of(admission, Answer(patch=[operation])))["response"]
    assert patched["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(patched["patch"])) == [operation]
