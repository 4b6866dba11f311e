"""The settings of a file or a command by dotted path, each with its place, whatever the syntax."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml

from peakgate.readers.files import FileError
from peakgate.readers.place import JSON, TOML, YAML, Place, Stated

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # the same class in Python

MOST_NODES = 50_000
"""Of a document: an anchor that is repeated nine levels deep stands for a billion."""

DEEPEST = 60


@dataclass(slots=True)
class Settings:
    """Leaves by dotted path (`zero_optimization.stage`); a list is a leaf of plain values. Keys are as they stand."""

    leaves: dict[str, Stated] = field(default_factory=dict)

    def __call__(self, path: str) -> Stated | None:
        """The setting at a path; None where it is not stated, or is null."""
        stated = self.leaves.get(path)
        return None if stated is None or stated.value is None else stated

    def first(self, *paths: str) -> Stated | None:
        """The first of several names of one setting."""
        return next((stated for stated in map(self, paths) if stated is not None), None)

    def has(self, prefix: str) -> bool:
        """Whether anything is stated at or under a path."""
        return any(path == prefix or path.startswith(f"{prefix}.") for path in self.leaves)

    def under(self, prefix: str) -> Settings:
        """The settings below a path, by what remains of theirs."""
        start = f"{prefix}."
        return Settings({path.removeprefix(start): stated for path, stated in self.leaves.items() if path.startswith(start)})

    def override(self, path: str, stated: Stated) -> None:
        """A later source wins."""
        self.leaves[path] = stated

    def merged(self, other: Settings) -> Settings:
        """Both; those of `other` win."""
        return Settings({**self.leaves, **other.leaves})


def read_settings(text: str, file: str) -> Settings:
    """The settings of a YAML, JSON or TOML file, by its name and content. Raises FileError."""
    if file.lower().endswith(".toml"):
        return read_toml(text, file)
    return read_yaml(text, file)[0]


def read_yaml(text: str, file: str) -> list[Settings]:
    """The settings of every document of a YAML or JSON file, with lines. Raises FileError."""
    kind = JSON if text.lstrip()[:1] in ("{", "[") else YAML
    source = text.replace("\t", "  ") if kind == JSON else text
    try:
        loader = _SafeLoader(source)
        try:
            found = []
            while loader.check_node():
                node = loader.get_node()
                found.append(Settings(dict(_leaves(loader, node, file, kind)) if node is not None else {}))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise FileError(f"is not {kind.upper()}{f' (line {mark.line + 1})' if mark else ''}") from error
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise FileError(f"is not {kind.upper()} that can be read") from error
    return found or [Settings()]


def _leaves(loader: yaml.SafeLoader | yaml.CSafeLoader, root: yaml.Node, file: str, kind: str) -> Iterator[tuple[str, Stated]]:
    """(path, value and place) of every leaf. Raises FileError for what unfolds without end."""
    waiting: list[tuple[str, yaml.Node, int]] = [("", root, 0)]
    count = 0
    while waiting:
        path, node, depth = waiting.pop()
        count += 1
        if count > MOST_NODES or depth > DEEPEST:
            raise FileError("unfolds into more than a config file holds")
        if isinstance(node, yaml.MappingNode):
            for key, value in reversed(node.value):
                name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
                if name == "<<":
                    merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                    waiting += [(path, each, depth + 1) for each in merged]
                else:
                    waiting.append((f"{path}.{name}" if path else name, value, depth + 1))
            continue
        place = Place(kind=kind, key=path, file=file, line=node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            if any(not isinstance(each, yaml.ScalarNode) for each in node.value):
                numbered = reversed(list(enumerate(node.value[:MOST_NODES])))
                waiting += [(f"{path}.{index}" if path else str(index), each, depth + 1) for index, each in numbered]
                continue
            yield path, Stated([loader.construct_object(each) for each in node.value[:MOST_NODES]], place)
        else:
            yield path, Stated(loader.construct_object(node), place)


_SECTION = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_.\-]+)["']?\s*=""")


def plain_yaml(text: str) -> object:
    """What a YAML text means, without places. Raises what PyYAML raises; what unfolds without end has to be refused by read_yaml before."""
    return yaml.load(text, Loader=_SafeLoader)


def read_toml(text: str, file: str) -> Settings:
    """The settings of a TOML file. Raises FileError."""
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise FileError("is not TOML") from error
    lines = dict(_toml_lines(text))
    return Settings(
        {path: Stated(value, Place(kind=TOML, key=path, file=file, line=lines.get(path, 0))) for path, value in _flat(tree, "")}
    )


def _toml_lines(text: str) -> Iterator[tuple[str, int]]:
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _SECTION.match(line):
            section = f"{match[1]}."
        elif match := _KEY.match(line):
            yield f"{section}{match[1]}", number


def _flat(tree: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(each, Mapping) for each in value):
            yield from _flat({str(index): each for index, each in enumerate(value)}, f"{path}.")
        else:
            yield path, value


def moved(settings: Settings, place: Place) -> Settings:
    """The same settings as if they stood at one place: a JSON text inside a flag."""
    return Settings({path: replace(stated, place=place) for path, stated in settings.leaves.items()})
