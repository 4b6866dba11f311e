"""The name of a prediction: `predictions/<id>`. Where no slash may stand (a stamp on a job, a label) the id stands for it.

Where nobody knows the name, as on a pod of Kubernetes, the `request_id` under which it was asked for stands for it: a UUID with its
hyphens, which an id never has.
"""

from __future__ import annotations

import re

PREFIX = "predictions/"
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def full_name(name: str) -> str:
    """`predictions/<id>` of a name or of a bare id."""
    return name if name.startswith(PREFIX) else PREFIX + name


def bare_id(name: str) -> str:
    """The id of a name; empty of none."""
    return name.removeprefix(PREFIX)


def request_id_of(name: str) -> str:
    """The request id that stands for a name, with the prefix or without; empty: it is a name, or nothing."""
    bare = bare_id(name)
    return bare if _UUID.fullmatch(bare) else ""
