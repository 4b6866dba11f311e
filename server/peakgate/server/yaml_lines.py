"""YAML with the line of every key, for files whose errors must say where they are."""

from __future__ import annotations

from collections.abc import Iterator

import yaml


class YamlError(ValueError):
    """Text that is not YAML, or states a key twice; begins with the line."""


def load_with_lines(text: str) -> tuple[object, dict[str, int]]:
    """The data of one document, and path -> line (from 1): `[0]`, `[0].name`, `[0].transformer.layers`. Raises YamlError."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        lines = dict(_lines(node, ""))
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        raise YamlError(f"{error.problem_mark.line + 1 if error.problem_mark else 1}: is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(f"1: cannot be read: {error}") from error


def line_of(lines: dict[str, int], path: str) -> int:
    """The line of a path, or of the nearest one around it."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path, 1)


def _lines(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            yield from _lines(each, f"{path}[{index}]")
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen if isinstance(key, yaml.ScalarNode) else False:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is stated twice", key.start_mark)
            seen.add(str(key.value))
            at = f"{path}.{key.value}" if path else str(key.value)
            yield from _lines(value, at)
            yield at, key.start_mark.line + 1
