"""The pods of a workload of any kind, and where each stands in the object. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from peakgate.hooks.kubernetes.objects import Object, at

MOST_TEMPLATES, DEEPEST = 64, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A pod, and where it stands in the object (RFC 6901)."""

    pointer: str
    pod: Object


def templates_of(workload: Object) -> list[Template]:
    """What holds `spec.containers`, wherever it stands."""
    return list(_templates(workload, "", 0))[:MOST_TEMPLATES]


def _templates(tree: object, pointer: str, depth: int) -> Iterator[Template]:
    if depth > DEEPEST:
        return
    if isinstance(tree, Mapping):
        if isinstance(at(tree, "spec", "containers"), list):
            yield Template(pointer=pointer, pod=tree)
            return
        for key, value in tree.items():
            if isinstance(key, str) and key not in ("metadata", "status"):
                yield from _templates(value, f"{pointer}/{escaped(key)}", depth + 1)
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield from _templates(value, f"{pointer}/{place}", depth + 1)


def escaped(key: str) -> str:
    """A key as a part of a pointer."""
    return key.replace("~", "~0").replace("/", "~1")
