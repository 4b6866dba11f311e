"""YAML as a job document needs it: safe types, no key stated twice, no anchors, errors with their line."""

from __future__ import annotations

from collections.abc import Hashable

import yaml

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML that was built without libyaml: slower, the same language
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # the same class in Python


class YamlError(Exception):
    """Text that is not YAML, in one line that names where."""


class _Loader(_SafeLoader):
    """Refuses a key that is stated twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """As PyYAML does, which keeps the last of two equal keys in silence."""
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is stated twice", key_node.start_mark)
            seen.add(key if isinstance(key, Hashable) else None)
        return super().construct_mapping(node, deep)


def load_all(text: str) -> list[object]:
    """Every document of `text`, empty ones left out. Raises YamlError."""
    try:
        documents = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise YamlError(f"is not YAML: {where}{error.problem}") from error
    except RecursionError as error:
        raise YamlError("is nested too deep, a job document has a few levels") from error
    except ValueError as error:  # what a scalar's text is converted to: a number of thousands of digits, a date in month 13
        raise YamlError("holds a number or a date that cannot be read") from error
    except yaml.YAMLError as error:
        raise YamlError(f"is not YAML: {error}") from error
    _refuse_aliases(documents)
    return documents


def _refuse_aliases(documents: list[object]) -> None:
    """An anchor that is repeated nine levels deep stands for a billion nodes; a job document needs none."""
    seen: set[int] = set()
    waiting: list[object] = list(documents)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict | list):
            continue
        if id(node) in seen:
            raise YamlError("repeats a mapping or list by an alias (*name), write it out")
        seen.add(id(node))
        waiting.extend(node.values() if isinstance(node, dict) else node)
