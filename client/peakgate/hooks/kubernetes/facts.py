"""What is known of the cluster around a workload: nodes, the flavor that was chosen, claims of devices, the catalogue. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at

CLAIM_TEMPLATE, CLAIM, CLASS = "ResourceClaimTemplate", "ResourceClaim", "DeviceClass"
DEVICE_KINDS = frozenset({CLAIM_TEMPLATE, CLAIM, CLASS})
"""Kinds of resource.k8s.io that say what a pod claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node's labels, and how many it has of each resource."""

    name: str
    labels: Mapping[str, str]
    has: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device that a driver of dynamic resource allocation publishes."""

    driver: str
    node: str = ""
    attributes: Mapping[str, object] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`nodes`: None when nobody looked. `nodes_may_join`: an autoscaler adds nodes of other kinds. `flavor`: labels of the flavor that a
    queue chose. `claims`: specs of ResourceClaimTemplates and ResourceClaims by name, or by namespace/name for that of `namespace`;
    `classes`: the expressions of DeviceClasses. `catalogue`: total bytes by name
    (CatalogService.ListGpus), without which a share of a card that is only named is unknown."""

    nodes: Sequence[Node] | None = None
    nodes_may_join: bool = False
    flavor: Mapping[str, str] = field(default_factory=dict)
    flavor_name: str = ""
    namespace: str = ""
    claims: Mapping[str, Object] = field(default_factory=dict)
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    devices: Sequence[Device] | None = None
    catalogue: Mapping[str, int] = field(default_factory=dict)


def nodes_of(items: Iterable[Object]) -> list[Node]:
    """Nodes of a list of the API. What is allocatable counts, not what is free: a job may wait for it."""
    return [
        Node(
            name=str(at(each, "metadata", "name") or ""),
            labels={key: str(value) for key, value in mapping_at(each, "metadata", "labels").items()},
            has={
                key: str(value)
                for key, value in (mapping_at(each, "status", "allocatable") or mapping_at(each, "status", "capacity")).items()
            },
        )
        for each in items
    ]


def devices_of(slices: Iterable[Object]) -> list[Device]:
    """The devices of ResourceSlices (resource.k8s.io/v1; v1beta1 has them below `basic`)."""
    found = []
    for each in slices:
        driver, node = str(at(each, "spec", "driver") or ""), str(at(each, "spec", "nodeName") or "")
        for device in list_at(each, "spec", "devices"):
            told = at(device, "basic") or device
            attributes = {
                key: next(iter(value.values()), None) for key, value in mapping_at(told, "attributes").items() if isinstance(value, Mapping)
            }
            capacity = {
                key: str(at(value, "value") if isinstance(value, Mapping) else value) for key, value in mapping_at(told, "capacity").items()
            }
            found.append(Device(driver=driver, node=node, attributes=attributes, capacity=capacity))
    return found


def claims_of(items: Iterable[Object]) -> dict[str, Object]:
    """Specs of ResourceClaimTemplates and ResourceClaims (resource.k8s.io) by namespace/name; a template's has that of the claim inside."""
    return {
        f"{at(each, 'metadata', 'namespace')}/{at(each, 'metadata', 'name')}": mapping_at(each, "spec", "spec") or mapping_at(each, "spec")
        for each in items
    }


def classes_of(items: Iterable[Object]) -> dict[str, list[str]]:
    """The expressions of DeviceClasses by name."""
    return {
        str(at(each, "metadata", "name")): [str(at(one, "cel", "expression") or "") for one in list_at(each, "spec", "selectors")]
        for each in items
    }


def with_devices(facts: Facts, namespace: str, named: Iterable[Object]) -> Facts:
    """With the claims and classes (resource.k8s.io) that a workload in `namespace` names."""
    by_kind: dict[object, list[Object]] = {}
    for each in named:
        by_kind.setdefault(at(each, "kind"), []).append(each)
    claims = [*by_kind.get(CLAIM_TEMPLATE, ()), *by_kind.get(CLAIM, ())]
    return replace(facts, namespace=namespace, claims=claims_of(claims), classes=classes_of(by_kind.get(CLASS, ())))
