"""Pages of lists: sizes and opaque tokens (AIP-158)."""

from __future__ import annotations

import base64
import binascii
import json

from peakgate.server.errors import PeakgateError, field_error

DEFAULT_SIZE = 50
LARGEST_SIZE = 1000


def page_size(asked: int) -> int:
    """The size to use. Raises FIELD_INVALID for a negative one."""
    if asked < 0:
        raise field_error("page_size", f"is {asked}; state 0 for {DEFAULT_SIZE}, or up to {LARGEST_SIZE}")
    return min(asked or DEFAULT_SIZE, LARGEST_SIZE)


def make_token(kind: str, *position: int | str) -> str:
    """A token for the page after `position`; `kind` names the list and its filters, so that a token fits no other."""
    return base64.urlsafe_b64encode(json.dumps([kind, *position]).encode()).decode()


def read_token(kind: str, token: str, *, places: tuple[type[int] | type[str], ...]) -> tuple[int | str, ...] | None:
    """The position in a token; None for an empty one. Raises PAGE_TOKEN_INVALID."""
    if not token:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise _invalid() from error
    if not isinstance(found, list) or found[:1] != [kind] or tuple(type(each) for each in found[1:]) != places:
        raise _invalid()
    return tuple(found[1:])


def _invalid() -> PeakgateError:
    return PeakgateError(
        "PAGE_TOKEN_INVALID",
        "page_token does not belong to this list with these filters",
        hint="pass the next_page_token of the previous page, with the same filters",
    )
