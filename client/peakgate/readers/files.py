"""The files that a launch names, opened on the caller's side, with the caller's rights, and never beyond their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

LARGEST_BYTES = 4 << 20
"""Of a config file or a script; a tokenizer or weights are never opened."""


class FileError(Exception):
    """A file that cannot be read, in a few words without its content."""


class Files(Protocol):
    """Where files come from."""

    def text(self, path: str) -> str:
        """The text of a file in UTF-8. Raises FileError."""

    def is_folder(self, path: str) -> bool:
        """Whether the path is a folder that can be looked into."""


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """Files on this machine; relative paths begin at `folder`."""

    folder: Path

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError."""
        try:
            target = self.folder / Path(path).expanduser()
            if not target.is_file():
                raise FileError("is no file" if target.exists() else "does not exist")
            with target.open("rb") as file:
                return decoded(file.read(LARGEST_BYTES + 1))
        except (OSError, ValueError, RuntimeError) as error:
            raise FileError("cannot be opened") from error

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        try:
            return (self.folder / Path(path).expanduser()).is_dir()
        except (OSError, ValueError, RuntimeError):
            return False


@dataclass(frozen=True, slots=True)
class GivenFiles:
    """Files whose text is at hand: config maps of a manifest, tests."""

    texts: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError."""
        if path not in self.texts:
            raise FileError("is not among the files at hand")
        return self.texts[path]

    def is_folder(self, path: str) -> bool:
        """Whether files lie under the path."""
        return any(each.startswith(f"{path.rstrip('/')}/") for each in self.texts)


@dataclass(frozen=True, slots=True)
class LayeredFiles:
    """Several places, the first that has a file wins."""

    layers: tuple[Files, ...]

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError, of what the last place says."""
        for layer in self.layers[:-1]:
            try:
                return layer.text(path)
            except FileError:
                continue
        return self.layers[-1].text(path)

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder in any of them."""
        return any(layer.is_folder(path) for layer in self.layers)


def decoded(content: bytes) -> str:
    """Text in UTF-8. Raises FileError."""
    if len(content) > LARGEST_BYTES:
        raise FileError(f"is larger than {LARGEST_BYTES >> 20} MiB, which no config file is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"is no text in UTF-8 (byte {error.start})") from error
