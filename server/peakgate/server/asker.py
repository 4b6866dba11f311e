"""Who submits a job, and why a rejected one should run all the same, as a request says it."""

from __future__ import annotations

from peakgate.memory.prediction import FieldError
from peakgate.server.errors import fields_error

LONGEST_USER = 256
"""Characters of the column (store/tables.py)."""

LONGEST_REASON = 500
"""One line for whoever reads the list of tries."""


def check_asker(user: str, reason: str) -> None:
    """Raises FIELD_INVALID for what is no name, or no line of text. Whether a name is true is not known: there is no authentication."""
    found = (*_problems("user", user, LONGEST_USER), *_problems("try_reason", reason, LONGEST_REASON))
    if found:
        raise fields_error(found)


def _problems(field: str, text: str, most: int) -> tuple[FieldError, ...]:
    if len(text) > most:
        return (FieldError(field=field, description=f"has {len(text)} characters; at most {most} are kept"),)
    if not text.isprintable():
        bad = next(f"U+{ord(each):04X}" for each in text if not each.isprintable())
        return (FieldError(field=field, description=f"holds {bad}, which cannot be printed; state one line of text"),)
    if field == "user" and text != text.strip():
        return (FieldError(field=field, description="begins or ends with a space; leave it out"),)
    return ()
