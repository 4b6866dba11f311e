"""What a manifest states in the job document's own words: a whole document, or one field an annotation, label or variable.

A later one of these wins: the variable PEAKGATE_SPEC of a container, labels and then annotations `peakgate.io/<field>` of the workload and
of its pods, the annotation peakgate.io/spec of the workload and of its pods. A field is named by its path: peakgate.io/model.preset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from peakgate.readers.files import FileError
from peakgate.readers.manifests.pods import Pods, members
from peakgate.readers.place import MANIFEST, VARIABLE, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_yaml
from peakgate.readers.stated import SPEC, state_document
from peakgate.v1.plain import descriptor_of
from peakgate.v1.training_job_pb2 import TrainingJob

PREFIX = "peakgate.io/"
SPEC_VARIABLE = "PEAKGATE_SPEC"
MOST_FIELDS = 200
"""Of annotations and labels that are read: the document has fewer fields."""

_SINGLE = frozenset(TrainingJob.DESCRIPTOR.fields_by_name)


def state_own_words(metadata: Sequence[Settings], pods: Iterable[Pods], own: Reading) -> None:
    """States them in `own`; `metadata`: the workload's, then those of its pods."""
    for template in pods:
        for container in template.containers():
            _state_variable(container, own)
    for part in ("labels", "annotations"):
        for each in metadata:
            _state_fields(each.under(part), own)
    for each in metadata:
        stated = each(f"annotations.{SPEC}")
        if stated is not None:
            state_document(stated.text, replace(stated.place, kind=MANIFEST, key=SPEC), own)


def _state_variable(container: Settings, own: Reading) -> None:
    for each in members(container, "env"):
        name, value = each("name"), each("value")
        if name is not None and value is not None and name.text == SPEC_VARIABLE:
            state_document(value.text, replace(value.place, kind=VARIABLE, key=SPEC_VARIABLE), own)


def _state_fields(named: Settings, own: Reading) -> None:
    for key, stated in list(named.leaves.items())[:MOST_FIELDS]:
        path = key.removeprefix(PREFIX)
        if path != key and _is_field(path) and stated.value is not None:
            own.fields[path] = Stated(_value(stated), replace(stated.place, kind=MANIFEST, key=key))


def _is_field(path: str) -> bool:
    """Whether it is a path inside a block of the job document, which no word of the hook is."""
    head, dot, rest = path.partition(".")
    if not dot or not rest or head not in _SINGLE:
        return False
    block = descriptor_of(TrainingJob()).fields_by_name[head].message_type
    return block is not None and rest.partition(".")[0] in block.fields_by_name


def _value(stated: Stated) -> object:
    """What YAML makes of the text: annotations and labels are texts."""
    try:
        found = read_yaml(f"value: {stated.text}", "")[0]
    except FileError:
        return stated.value
    value = found("value")
    return value.value if value is not None else stated.value
