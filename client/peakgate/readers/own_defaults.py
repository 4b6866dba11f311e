"""What a framework's own program does where a launch says nothing: a fact of the job, stated as the default that it is.

The server holds open what "a library or a script may have decided without a word" (`peakgate.memory.favourable`); in a launch of a
framework's own program nobody else decides. A script of somebody's own has no table here, and leaves those fields open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peakgate.readers.launch import NOT_READ, Launch
from peakgate.readers.mixed_precision import of_checkpoint
from peakgate.readers.own_tables import ROWS
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Scalar
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

LEFT_ALONE = ("auto", "default")
"""Values that name the framework's own choice."""


@dataclass(frozen=True, slots=True)
class Own:
    """A row: `table`, a kind of launch; the field and its value; `when` it applies; settings that decide otherwise; where it stands."""

    table: str
    path: str
    value: Scalar
    when: str
    unless: tuple[str, ...]
    source: str


def _several(path: str) -> Callable[[Reading], bool]:
    def holds(reading: Reading) -> bool:
        degree = reading.get(path)
        return isinstance(degree, int) and degree > 1

    return holds


def _in(path: str, *values: object) -> Callable[[Reading], bool]:
    return lambda reading: reading.get(path) in values


def _lacks(*words: str) -> Callable[[Reading], bool]:
    """A model whose name has none of the words; one without a name is another matter."""

    def holds(reading: Reading) -> bool:
        config = reading.get("model.hf_config")
        kind = config.get("model_type") if isinstance(config, dict) else None
        name = f"{reading.get('model.preset') or ''} {kind or ''}".lower().replace("_", "-").strip()
        return bool(name) and not any(word in name for word in words)

    return holds


def _in_float32(reading: Reading) -> bool:
    """A checkpoint in float32 of a job that says nothing of formats: whatever the version, it is loaded as it is."""
    return of_checkpoint(reading) == "float32" and not any(path.startswith("precision.") for path in reading.fields)


METHOD, SHARDING = "method.name", "parallelism.sharding"

CONDITIONS: dict[str, Callable[[Reading], bool]] = {
    "*": lambda _: True,
    "text": _in(METHOD, None, "pretrain", "sft"),
    "pairs": _in(METHOD, "dpo", "kto", "orpo"),
    "unpacked": _in("batch.packed", False),
    "preset": lambda reading: "model.preset" in reading.fields,
    "one rank": _in(SHARDING, "none"),
    "fsdp": _in(SHARDING, "fsdp", "hsdp"),
    "float32 checkpoint": _in_float32,
    "tensor": _several("parallelism.tensor"),
    "context": _several("parallelism.context"),
    "no other attention": _lacks("gemma-2-", "gemma2", "gpt-oss", "youtu"),
    "auto attention": _lacks("gemma", "hunyuan", "qwen-1-8b", "qwen-7b", "qwen-14b", "qwen-72b"),
}
"""`when` of a row: what the reading must hold. Words with + between them must all hold."""


def _parse(text: str) -> tuple[Own, ...]:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    values: dict[str, Scalar] = {"true": True, "false": False}
    return tuple(Own(t, p, values.get(v, v), w, tuple(u.split()), s) for t, p, v, w, u, s in rows)


OWN = _parse(ROWS)


def state_own(table: str, settings: Settings, launch: Launch, reading: Reading) -> None:
    """States the rows of a table that hold; none where a file or words of the launch are not at hand, which may decide otherwise."""
    if launch.open_ended or any(sentence.endswith(NOT_READ) for sentence in (*reading.warnings, *launch.around.warnings)):
        return
    said = _said(settings)
    for row in OWN:
        if row.table != table or row.path in reading.fields or not said.isdisjoint(row.unless):
            continue
        if all(CONDITIONS[word](reading) for word in row.when.split(" + ")):
            _state(row, settings, reading)


def _said(settings: Settings) -> set[str]:
    """Settings that say anything but no, and their sections."""
    found = {path for path, stated in settings.leaves.items() if not _silent(stated)}
    return found | {path.partition(".")[0] for path in found}


def _silent(stated: Stated) -> bool:
    if stated.value is None or stated.value is False:
        return True
    return isinstance(stated.value, str) and (truth(stated) is False or stated.value.strip().lower() in LEFT_ALONE)


def _state(row: Own, settings: Settings, reading: Reading) -> None:
    """The row; a switch of it that is there, and off, is where it stands."""
    switch = settings(row.unless[0]) if row.unless else None
    if switch is not None:
        reading.state(row.path, row.value, switch.place)
    else:
        reading.default(row.path, row.value, row.source)
