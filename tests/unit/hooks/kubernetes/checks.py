"""What holds for the answer to every review of the table."""

from __future__ import annotations

from tests.admission_reviews import Case


def check(case: Case, review: dict[str, object], *, may_lack_change: bool = False) -> None:
    """The answer to a body of the table. `may_lack_change`: the search for one was not waited for."""
    response = review["response"]
    assert isinstance(response, dict)
    assert response["allowed"] is case.is_allowed
    warnings, status = response.get("warnings", []), response.get("status", {})
    said = "\n".join([*warnings, status.get("message", "")]).strip()
    assert bool(said) is bool(case.says), said
    assert case.says in said or (may_lack_change and case.says == "cheapest change"), said
    assert len(warnings) <= 3
    assert all(len(each) <= (120 if case.verdict == "reject" else 256) for each in warnings)
    assert said.isascii()
    audit = response.get("auditAnnotations", {})
    assert audit.get("outcome", "skipped") == case.outcome
    assert all(isinstance(value, str) for value in audit.values())
    if not case.is_allowed:
        assert (status["code"], status["reason"]) == (403, "Forbidden")
