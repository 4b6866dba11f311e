"""The files as a script sees them: from the folder it went to, with those that it wrote itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from peakgate.readers.files import FileError, Files


@dataclass(frozen=True, slots=True)
class ScriptFiles:
    """`folder`: where relative paths begin; `beside`: the script's own folder, where they are looked for next. A job is often submitted
    from one of the two, and nobody says which."""

    files: Files
    folder: str = ""
    beside: str = ""
    written: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError."""
        first: FileError | None = None
        for place in self.places(path):
            if place in self.written:
                return self.written[place]
            try:
                return self.files.text(place)
            except FileError as error:
                first = first or error
        raise first or FileError("does not exist")

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        return any(self.files.is_folder(place) for place in self.places(path))

    def places(self, path: str) -> Iterator[str]:
        """Where a path may lie, the likeliest first."""
        yield from dict.fromkeys([placed(path, self.folder), placed(path, ""), path, placed(path, self.beside)])


def placed(path: str, folder: str) -> str:
    """A path seen from a folder."""
    if path.startswith(("/", "~")):
        return posixpath.normpath(path)
    return posixpath.normpath(posixpath.join(folder, path)) if path else path
