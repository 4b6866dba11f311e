"""Config maps of the same file: as files that a container sees, and as variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from posixpath import basename, join, normpath

from peakgate.readers.files import FileError
from peakgate.readers.manifests.pods import members
from peakgate.readers.manifests.resources import warn_once
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

Maps = Mapping[str, Mapping[str, Stated]]
"""Name of a config map -> its keys and values."""


def maps_of(documents: Iterable[Settings]) -> Maps:
    """The config maps among the documents."""
    found = {}
    for each in documents:
        kind, name = each("kind"), each("metadata.name")
        if kind is not None and kind.text == "ConfigMap" and name is not None:
            found[name.text] = {key: stated for key, stated in each.under("data").leaves.items() if stated.value is not None}
    return found


@dataclass(frozen=True, slots=True)
class MountedFiles:
    """Files of config maps where a container mounts them; relative paths begin at its working folder."""

    texts: Mapping[str, str]
    folder: str = "/"

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError."""
        found = self.texts.get(normpath(join(self.folder, path)))
        if found is None:
            raise FileError("is not among the mounted files")
        return found

    def is_folder(self, path: str) -> bool:
        """Whether files are mounted under the path."""
        start = normpath(join(self.folder, path)).rstrip("/")
        return any(each.startswith(f"{start}/") for each in self.texts)


@dataclass(slots=True)
class UnmountedFiles:
    """Files of config maps that no volume of the manifest puts where a launch looks (a runtime elsewhere may): by their name alone, where
    one map has such a key. Each that is used is a warning."""

    maps: Maps
    reading: Reading

    def text(self, path: str) -> str:
        """The text of a file. Raises FileError."""
        name = basename(path)
        holders = {each: values[name] for each, values in self.maps.items() if name in values}
        if not name or len(holders) != 1:
            raise FileError("is in no config map of the file")
        ((holder, stated),) = holders.items()
        warn_once(
            self.reading, f"{path}: no volume of the file mounts it; the config map {holder} has {name}, which is taken ({stated.place})"
        )
        return stated.text

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - a form of Files
        """No folder is known."""
        return False


def mounted(spec: Settings, container: Settings, maps: Maps) -> MountedFiles:
    """The files of a container."""
    texts: dict[str, str] = {}
    volumes = {name.text: each for each in members(spec, "volumes") if (name := each("name")) is not None}
    for mount in members(container, "volumeMounts"):
        name, path, part = mount("name"), mount("mountPath"), mount("subPath")
        if name is None or path is None or name.text not in volumes:
            continue
        files = _files(volumes[name.text], maps)
        if part is not None and part.text in files:
            texts[normpath(path.text)] = files[part.text]
        elif part is None:
            texts |= {normpath(join(path.text, file)): text for file, text in files.items()}
    folder = container("workingDir")
    return MountedFiles(texts, folder.text if folder is not None else "/")


def _files(volume: Settings, maps: Maps) -> dict[str, str]:
    """Path inside a volume -> text."""
    sources = [volume.under("configMap"), *(each.under("configMap") for each in members(volume, "projected.sources"))]
    found: dict[str, str] = {}
    for source in sources:
        name = source("name")
        values = maps.get(name.text, {}) if name is not None else {}
        chosen = {key.text: path.text for each in members(source, "items") if (key := each("key")) and (path := each("path"))}
        found |= {chosen.get(key, key): stated.text for key, stated in values.items() if not chosen or key in chosen}
    return found


def variables(container: Settings, maps: Maps) -> dict[str, Stated]:
    """The environment that a container's spec gives it; what a secret or the node gives is not known."""
    found: dict[str, Stated] = {}
    for each in members(container, "envFrom"):
        name, prefix = each("configMapRef.name"), each("prefix")
        start = prefix.text if prefix is not None else ""
        found |= {f"{start}{key}": stated for key, stated in maps.get(name.text if name is not None else "", {}).items()}
    for each in members(container, "env"):
        variable, value = each("name"), each("value")
        source, key = each("valueFrom.configMapKeyRef.name"), each("valueFrom.configMapKeyRef.key")
        if value is None and source is not None and key is not None:
            value = maps.get(source.text, {}).get(key.text)
        if variable is not None and value is not None:
            found[variable.text] = value
    return found


def is_unseen(container: Settings, maps: Maps) -> bool:
    """Whether it takes all of a secret, or of a config map that is not at hand, into its environment."""
    sources = members(container, "envFrom")
    return any(name is None or name.text not in maps for name in (each("configMapRef.name") for each in sources))


def unvalued(container: Settings, known: Mapping[str, Stated]) -> frozenset[str]:
    """The variables whose values stand in a secret or in a config map that is not at hand."""
    named = (
        each("name") for each in members(container, "env") if each.has("valueFrom.secretKeyRef") or each.has("valueFrom.configMapKeyRef")
    )
    return frozenset(name.text for name in named if name is not None and name.text not in known)
