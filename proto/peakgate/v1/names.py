"""The name of a prediction: `predictions/<id>`. Where no slash may stand (a stamp on a job, a label) the id stands for it."""

from __future__ import annotations

PREFIX = "predictions/"


def full_name(name: str) -> str:
    """`predictions/<id>` of a name or of a bare id."""
    return name if name.startswith(PREFIX) else PREFIX + name


def bare_id(name: str) -> str:
    """The id of a name; empty of none."""
    return name.removeprefix(PREFIX)
