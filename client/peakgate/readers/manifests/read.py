"""Stand-in."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.readers.files import Files
from peakgate.readers.launch import Launch
from peakgate.readers.settings import Settings


def is_manifest(settings: Settings) -> bool:
    """Whether a YAML file is a Kubernetes manifest."""
    return settings("apiVersion") is not None and settings("kind") is not None


def launches_of_manifest(text: str, path: str, files: Files) -> Iterator[Launch]:
    """The launches."""
    yield from ()
