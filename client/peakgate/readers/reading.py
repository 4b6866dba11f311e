"""What a launch says of a job: fields with their places, contradictions, and what no field of the document can say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from peakgate.readers.place import DEFAULT, Place, Stated

Scalar = str | int | float | bool
Value = Scalar | list[Scalar] | dict[str, object]


@dataclass(slots=True)
class Reading:
    """`fields`: path of the job document -> value and place. `warnings` name both places of what contradicts; `unread` are things that
    change memory and that the document has no words for, which make an answer UNDECIDED; `tried`: readers that did not know the file."""

    fields: dict[str, Stated] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    format: str = ""
    """The reader's name."""
    checkpoint: str = ""
    """The folder whose config.json the trained model is."""
    own: frozenset[str] = frozenset()
    """Fields that the submitter states in the document's own words, beside the launch."""
    unreadable: set[str] = field(default_factory=set)
    """Fields that a setting states in a way that cannot be read: no default stands in for it."""
    program: str = ""
    """The training program as the launch writes it; empty of a config file by itself."""
    asides: dict[str, str] = field(default_factory=dict)
    """What the submitter says to whoever admits the job, and not of the job: try, override."""
    may_not_run: bool = False
    """Whether a branch of a script, or a variable that an image may set, decides that this launch runs and no other."""
    container: int = 0
    """Which container of a manifest starts it, from 1 on."""

    def state(self, path: str, value: Value, place: Place) -> None:
        """Notes a field; a later value wins over an earlier one, and one that differs is a warning unless the earlier is a default."""
        known = self.fields.get(path)
        if known is not None and known.value != value and DEFAULT not in (known.place.kind, place.kind):
            self.warnings.append(
                f"{path}: {known.text} ({known.place}) and {Stated(value, place).text} ({place}) contradict; the last is taken"
            )
        if known is not None and place.kind == DEFAULT:
            return  # what is stated wins over a default, whichever comes first
        self.fields[path] = Stated(value, place)

    def take(self, path: str, stated: Stated) -> None:
        """Notes a field whose value is one of a job document already."""
        self.state(path, stated.value, stated.place)  # type: ignore[arg-type]  # a Stated may hold anything; this one holds a field's value

    def default(self, path: str, value: Value, whose: str) -> None:
        """Notes what a framework does when nothing is said; what is stated wins, and what is stated and cannot be read stays open."""
        if path not in self.unreadable:
            self.state(path, value, Place(kind=DEFAULT, key=whose))

    def cannot_say(self, what: str, place: Place) -> None:
        """Notes something that changes memory and has no field."""
        sentence = f"{what} ({place})"
        if sentence not in self.unread:
            self.unread.append(sentence)

    def get(self, path: str) -> object:
        """The value of a field, or None."""
        stated = self.fields.get(path)
        return stated.value if stated is not None else None

    def merge(self, other: Reading) -> None:
        """Takes over what another reading found; its values win."""
        self.forget_other_models(other)
        for path, stated in other.fields.items():
            self.take(path, stated)
        self.checkpoint = other.checkpoint or self.checkpoint
        self.unreadable |= other.unreadable
        self.warnings += [each for each in other.warnings if each not in self.warnings]
        self.unread += [each for each in other.unread if each not in self.unread]

    def forget_other_models(self, other: Reading) -> None:
        """Leaves out what is stated of the model when another reading, which wins, describes it in another way: a document takes one."""
        kinds = {path.split(".")[1] for path in other.fields if path.startswith("model.")}
        for path in [each for each in self.fields if kinds and each.startswith("model.") and each.split(".")[1] not in kinds]:
            del self.fields[path]

    def document(self) -> dict[str, object]:
        """The job document, with paths as keys."""
        document: dict[str, object] = {path: stated.value for path, stated in self.fields.items()}
        return document | ({"unread": list(self.unread)} if self.unread and "unread" not in self.own else {})


Convert = Callable[[Stated], Value | None]


@dataclass(frozen=True, slots=True)
class Row:
    """A setting of a format and the field that it means. `convert` makes the field's value of it; None: it says nothing of the field."""

    key: str
    path: str
    convert: Convert


def apply(rows: Iterable[Row], settings: Callable[[str], Stated | None], reading: Reading) -> None:
    """States the field of every row whose setting is there; a setting that cannot be converted is a warning."""
    for row in rows:
        stated = settings(row.key)
        if stated is None:
            continue
        try:
            value = row.convert(stated)
        except ValueError as error:
            reading.unreadable.add(row.path)
            reading.warnings.append(f"{row.path}: {stated.text[:80]!r} cannot be read ({stated.place}): {error}")
            continue
        if value is not None:
            reading.state(row.path, value, stated.place)
