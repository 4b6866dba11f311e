"""The nodes that a pod may run on: its nodeSelector, its required node affinity, and the labels of the flavor it was given. Pure.

Terms of an affinity are alternatives, the expressions in one hold together (core/v1 NodeSelector). What cannot be read rules no node out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from peakgate.readers.manifests.pods import members
from peakgate.readers.settings import Settings

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What one label of a node must be. `source`: where that is said."""

    key: str
    operator: str = IN
    values: tuple[str, ...] = ()
    source: str = ""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets it (apimachinery labels.Requirement.Matches)."""
        value = labels.get(self.key)
        if self.operator == IN:
            return value in self.values
        if self.operator == NOT_IN:
            return value is None or value not in self.values
        if self.operator in (EXISTS, DOES_NOT_EXIST):
            return (value is not None) is (self.operator == EXISTS)
        if self.operator in (GREATER, LESS):
            return value is not None and self._compares(value)
        return True

    def _compares(self, value: str) -> bool:
        try:
            have, than = int(value), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return have > than if self.operator == GREATER else have < than

    def __str__(self) -> str:
        """For a person."""
        words = {GREATER: ">", LESS: "<", IN: "=" if len(self.values) == 1 else "in"}.get(self.operator, self.operator)
        return f"{self.key} {words} {' '.join(self.values)}".strip() if words != "=" else f"{self.key}={self.values[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """`always` holds on every node that the pod may run on, and one of `terms` does when there are any."""

    always: tuple[Requirement, ...] = ()
    terms: tuple[tuple[Requirement, ...], ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod may run on a node with these labels."""
        if not all(each.holds(labels) for each in self.always):
            return False
        return not self.terms or any(all(each.holds(labels) for each in term) for term in self.terms)

    def branches(self) -> list[tuple[Requirement, ...]]:
        """Each way to meet the selection, as requirements that hold together."""
        return [(*self.always, *term) for term in self.terms] or [self.always]


def selection_of(spec: Settings, flavor: Mapping[str, str] | None = None, flavor_name: str = "") -> Selection:
    """The selection of a pod's spec, with the labels that its flavor will add to it."""
    source = f"flavor {flavor_name}".strip()
    given = [Requirement(key=key, values=(value,), source=source) for key, value in (flavor or {}).items()]
    own = [
        Requirement(key=key, values=(stated.text,), source=f"nodeSelector {key}")
        for key, stated in spec.under("nodeSelector").leaves.items()
        if stated.value is not None and key not in (flavor or {})
    ]
    terms = tuple(_term(term) for term in members(spec, _TERMS) if term.has("matchExpressions") or term.has("matchFields"))
    return Selection(always=(*given, *own), terms=terms)


def _term(term: Settings) -> tuple[Requirement, ...]:
    found = []
    for each in members(term, "matchExpressions"):
        key, operator, values = each("key"), each("operator"), each("values")
        if key is None or operator is None:
            continue
        listed = values.value if values is not None and isinstance(values.value, list) else []
        texts = tuple(str(value) for value in listed)
        found.append(Requirement(key=key.text, operator=operator.text, values=texts, source=f"nodeAffinity {key.text}"))
    return tuple(found)
