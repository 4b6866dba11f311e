"""A suggestion in the job's own syntax, on one line: `--micro-batch-size 2 --recompute-granularity full (train.sh)`."""

from __future__ import annotations

from collections.abc import Iterable

from peakgate.client.rewrite import changes_of
from peakgate.client.source import LaunchText
from peakgate.readers.edits import Edit
from peakgate.readers.place import FLAG, TOML
from peakgate.readers.write_back import SEGMENTS, VARIABLE, edits_of
from peakgate.v1.prediction_pb2 import Suggestion


def change_of(suggestion: Suggestion, launch: LaunchText, own: str = "") -> str:
    """What to write where; a field that has no place in the launch stands in the job document's words. `own`: what the submitter sent,
    which needs no name."""
    changes = changes_of(suggestion)
    exported = [f"export {VARIABLE}"] if changes.pop(SEGMENTS, None) is True else []
    unsaid: list[str] = []
    edits = edits_of(launch.reading, changes, unsaid)
    files = dict.fromkeys(edit.place.file for edit in edits)
    parts = [_in_file(file, (edit for edit in edits if edit.place.file == file), is_named=file != own) for file in files]
    return ", ".join([*parts, *exported, *unsaid])


def _in_file(file: str, edits: Iterable[Edit], *, is_named: bool) -> str:
    told = [_setting(edit) for edit in edits]
    flags = " ".join(dict.fromkeys(text for text, is_flag in told if is_flag))  # two fields may have one flag
    settings = ", ".join(dict.fromkeys(text for text, is_flag in told if not is_flag))
    text = ", ".join(each for each in (flags, settings) if each)
    return f"{text} ({file.rpartition('/')[2]})" if file and is_named else text


def _setting(edit: Edit) -> tuple[str, bool]:
    """The setting as its file has it, and whether it is a flag."""
    key, value = edit.place.key, edit.value
    if edit.place.kind == FLAG:
        if value is False:
            return f"without {key}", True
        return (key if value is True else f"{key} {_text(value)}"), True
    return f"{key}{' = ' if edit.place.kind == TOML else ': '}{_text(value)}", False


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
