"""An AdmissionReview of admission.k8s.io/v1 as data, and the answer to it. Pure.

Fields: k8s.io/api/admission/v1/types.go. What a body may hold is not believed: every field is checked for its type.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peakgate.client.render.text import visible
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at, text_at

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
FORBIDDEN = 403
LONGEST_NAME = 256
"""Of a user, as the service takes it; names and namespaces have at most 253 characters."""

MOST_GROUPS = 1000
LONGEST_WARNING = 256
"""The API server cuts what is longer once all of them pass 4096 (apiserver pkg/endpoints/handlers/responsewriters, warning recorder)."""


class ReviewError(Exception):
    """A body that is no AdmissionReview, in a few words without its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What is asked. `user`: who sends the object; `object`: as it will be stored, with its uid and its final name; `old`: as it is stored
    while it is updated."""

    uid: str
    group: str = ""
    kind: str = ""
    operation: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    is_dry_run: bool = False
    object: Object = field(default_factory=dict)
    old: Object = field(default_factory=dict)

    @property
    def metadata(self) -> Object:
        """Of the object."""
        return mapping_at(self.object, "metadata")

    @property
    def object_uid(self) -> str:
        """By which everything that comes of the object can be led back to it; empty while it has none."""
        return text_at(self.metadata, "uid")

    def annotation(self, name: str) -> str:
        """On one line; empty when it is not there."""
        return one_line(text_at(self.metadata, "annotations", name))

    def label(self, name: str) -> str:
        """Empty when it is not there."""
        return text_at(self.metadata, "labels", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`message`: why it is denied; `patch`: operations of a JSON patch (RFC 6902)."""

    is_allowed: bool = True
    message: str = ""
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = field(default_factory=dict)
    patch: Sequence[Object] = ()


def parse_review(body: bytes) -> Admission:
    """The request of a review. Raises ReviewError."""
    try:
        review = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReviewError("the body is no JSON") from error
    request, uid = mapping_at(review, "request"), text_at(review, "request", "uid")
    if at(review, "kind") != KIND or at(review, "apiVersion") != API_VERSION or not uid:
        raise ReviewError(f"the body is no {KIND} of {API_VERSION} with a request")
    return Admission(
        uid=uid,
        group=text_at(request, "kind", "group"),
        kind=text_at(request, "kind", "kind"),
        operation=text_at(request, "operation"),
        namespace=one_line(text_at(request, "namespace")),
        name=one_line(text_at(request, "name") or text_at(request, "object", "metadata", "generateName")),
        user=one_line(text_at(request, "userInfo", "username")),
        groups=tuple(text_at(each) for each in list_at(request, "userInfo", "groups")[:MOST_GROUPS]),
        is_dry_run=request.get("dryRun") is True,
        object=mapping_at(request, "object"),
        old=mapping_at(request, "oldObject"),
    )


def response_of(admission: Admission, answer: Answer) -> bytes:
    """The whole body that goes back."""
    response: dict[str, object] = {"uid": admission.uid, "allowed": answer.is_allowed}
    if not answer.is_allowed:
        response["status"] = {"code": FORBIDDEN, "reason": "Forbidden", "message": answer.message}
    if answer.warnings:
        response["warnings"] = [each[:LONGEST_WARNING] for each in answer.warnings]
    if answer.audit:
        response["auditAnnotations"] = dict(answer.audit)
    if answer.patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(list(answer.patch)).encode()).decode()}
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response}).encode()


def one_line(value: str) -> str:
    """A name or a reason as the service takes it: one line that can be printed."""
    return visible(" ".join(value[: 4 * LONGEST_NAME].encode("utf-8", "replace").decode().split()))[:LONGEST_NAME].strip()
