"""From a snapshot's file to the text of a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peakgate.client.errors import InputError
from peakgate.client.probe.history import History, history_of
from peakgate.client.probe.pickled import PlainPickle
from peakgate.client.probe.snapshot import snapshot_of
from peakgate.client.tracer.profile import document

LARGEST_FILE = 1 << 30
"""Bytes of a file beyond which it is refused: a thousand times those of a step of a 3.4 billion parameter model."""

ARCHIVES = {b"\x1f\x8b": "gzip", b"PK": "zip", b"\x28\xb5": "zstd", b"BZ": "bzip2", b"\xfd7": "xz"}


def profile_of(path: Path, facts: dict[str, Any], *, device: int | None) -> str:
    """The profile of the run that left the snapshot; `facts`: what is known of it otherwise. Raises InputError."""
    snapshot = snapshot_of(PlainPickle(_content(path)).load(), device)
    history = history_of(snapshot)
    measured = {
        "live_bytes": history.live_bytes,
        "reserved_bytes": history.reserved_bytes or 0,
        "expandable_segments": snapshot.expandable,
        "stacks": history.stacks,
        "out_of_memory": snapshot.out_of_memory,
    }
    named = {"snapshot": path.name, "measured": measured}
    return json.dumps(document(named | facts | _sums(history), history.start, history.entries))


def _sums(history: History) -> dict[str, Any]:
    return {"parameters": 0, "trainable_parameters": 0, "gradient_bytes": 0, "saved_bytes": 0, "phase_live_bytes": history.phases}


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than {LARGEST_FILE} bytes: record a shorter history (max_entries)")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    archive = ARCHIVES.get(content[:2])
    if archive:
        raise InputError(f"{path} is a {archive} archive: unpack the snapshot first")
    if len(content) > LARGEST_FILE:
        raise InputError(f"{path} is larger than {LARGEST_FILE} bytes")
    return content
