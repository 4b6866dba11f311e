"""What a submitter says in a job document's own words beside the launch: an annotation of a manifest, lines of a script.

The reader here is the last of all: a launch that no format knows, whose model was said so, is a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml
from google.protobuf.descriptor import Descriptor

from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import plain_yaml, read_yaml
from peakgate.v1.plain import descriptor_of
from peakgate.v1.training_job_pb2 import TrainingJob

SPEC = "peakgate.io/spec"
"""The annotation that holds a job document."""


class StatedReader:
    """Knows what names a model in the submitter's own words, and adds nothing to it."""

    name = "stated"

    def recognises(self, launch: Launch) -> bool:
        """Whether the submitter names a model."""
        return any(path.startswith("model.") for path in launch.own.fields)

    def read(self, launch: Launch) -> Reading:  # noqa: ARG002 - a reader's form
        """Nothing: what the submitter says is taken by the caller."""
        return Reading()


NO_YAML, NO_DOCUMENT = "is no YAML that can be read", "is no job document"
"""What a warning says of a document that was meant and states nothing."""


def is_broken(warning: str) -> bool:
    """Whether it is one of those: somebody wrote a job document, and nothing of it counts."""
    return NO_YAML in warning or NO_DOCUMENT in warning


def state_document(text: str, place: Place, reading: Reading) -> None:
    """States every field of a job document that stands as text in one place; one that is none is a warning, and says nothing."""
    try:
        read_yaml(text, place.file)  # refuses what unfolds without end
        document = plain_yaml(text)
    except (FileError, yaml.YAMLError, ValueError, RecursionError, AttributeError, TypeError) as error:
        reading.warnings.append(f"{place.key} {NO_YAML} ({place}): {error if isinstance(error, FileError) else type(error).__name__}")
        return
    if document is None:  # empty
        return
    if not isinstance(document, Mapping):
        reading.warnings.append(f"{place.key} {NO_DOCUMENT} ({place}): it needs a mapping")
        return
    for path, value in _fields(document, descriptor_of(TrainingJob()), ""):
        reading.fields[path] = Stated(value, place)  # a nearer one wins in silence


def _fields(document: Mapping[object, object], descriptor: Descriptor, start: str) -> Iterator[tuple[str, object]]:
    """(path, value) of every field; blocks are those of the message."""
    for key, value in document.items():
        path = f"{start}{key}"
        block = _block(descriptor, str(key))
        if isinstance(value, Mapping) and block is not None:
            yield from _fields(value, block, f"{path}.")
        elif value is not None:
            yield path, value


def _block(descriptor: Descriptor, key: str) -> Descriptor | None:
    """The fields inside a field, when it has names of its own: no list, and no mapping of anything."""
    field = descriptor.fields_by_name.get(key)
    message = field.message_type if field is not None and not field.is_repeated else None
    return message if message is not None and message.full_name.startswith("peakgate.") else None
