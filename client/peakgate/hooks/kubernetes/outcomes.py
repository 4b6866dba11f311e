"""Words of metrics and of the audit log: what becomes of a review."""

from __future__ import annotations

OUTCOMES = (
    ALLOWED := "allowed",
    WOULD_DENY := "would_deny",
    DENIED := "denied",
    OVERRIDDEN := "overridden",
    TRIED := "tried",
    UNCHECKED := "unchecked",
    UNREAD := "unread",
    SKIPPED := "skipped",
    FAULT := "fault",
)
"""unchecked: nobody could judge in time; unread: the object does not say enough to be a job; fault: our own."""

VERDICTS = ("admit", "reject", "undecided", NO_VERDICT := "none")
