"""What schemas miss about how objects find each other. Each rule yields one line for each fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.integration.kubernetes.charts import Manifest
from tests.integration.kubernetes.pods import CLUSTER_WIDE, Workload, label, namespace_of, of_kind, selects, workloads

Objects = Sequence[Manifest]


def _selected(objects: Objects, selector: Any, namespace: str) -> list[Workload]:
    return [each for each in workloads(objects) if each.namespace == namespace and selects(selector or {}, each.labels)]


def selectors_match(objects: Objects) -> Iterator[str]:
    """A workload selects its own pods and nobody else's; Services, budgets and policies select exactly one workload."""
    for workload in workloads(objects):
        selector = workload.object["spec"].get("selector", {}).get("matchLabels")
        if selector is not None and [found.name for found in _selected(objects, selector, workload.namespace)] != [workload.name]:
            yield f"{workload.name}: its selector does not match its pods and no others"
    for each in of_kind(objects, "Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = each["spec"]
        selector = spec["selector"] if each["kind"] == "Service" else spec.get("podSelector", spec.get("selector"))["matchLabels"]
        count = len(_selected(objects, selector, namespace_of(each)))
        if count != 1:
            yield f"{label(each)}: selects {count} workloads, not 1"


def budgets_let_nodes_drain(objects: Objects) -> Iterator[str]:
    """A budget stands only before several replicas, and lets one of them go."""
    for each in of_kind(objects, "PodDisruptionBudget"):
        for found in _selected(objects, each["spec"]["selector"]["matchLabels"], namespace_of(each)):
            if found.object["spec"].get("replicas", 1) < 2:
                yield f"{label(each)}: {found.name} has one replica, whose node could never be drained"
        if each["spec"].get("maxUnavailable") != 1:
            yield f"{label(each)}: maxUnavailable is not 1"


def ports_are_named(objects: Objects) -> Iterator[str]:
    """Every container port has a name of its own, and what Services and policies name exists."""
    for workload in workloads(objects):
        ports = [port.get("name") for container in workload.containers for port in container.get("ports", [])]
        if None in ports or len(set(ports)) != len(ports):
            yield f"{workload.name}: ports without a name of their own: {ports}"
    for each in of_kind(objects, "Service"):
        for port in each["spec"]["ports"]:
            for found in _selected(objects, each["spec"]["selector"], namespace_of(each)):
                if port.get("targetPort") not in found.ports:
                    yield f"{label(each)}: {found.name} has no port {port.get('targetPort')}"


def policies_name_ports(objects: Objects) -> Iterator[str]:
    """A policy lets in by every port that its pods have and by no other, and names ports of others only where they have them."""
    for policy in of_kind(objects, "NetworkPolicy"):
        spec = policy["spec"]
        for found in _selected(objects, spec["podSelector"].get("matchLabels"), namespace_of(policy)):
            allowed = {port["port"] for rule in spec.get("ingress", []) for port in rule.get("ports", [])}
            if allowed != set(found.ports):
                yield f"{label(policy)}: lets in {sorted(allowed)}, and {found.name} has {sorted(found.ports)}"
        for rule in spec.get("egress", []):
            for port in rule.get("ports", []):
                if isinstance(port["port"], str) and not any(_reached(objects, policy, peer, port["port"]) for peer in rule.get("to", [])):
                    yield f"{label(policy)}: egress to a port {port['port']} that no selected pod has"


def _reached(objects: Objects, policy: Manifest, peer: Any, port: str) -> bool:
    other = peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name", namespace_of(policy))
    selector = peer.get("podSelector", {}).get("matchLabels")
    return any(port in found.ports for found in _selected(objects, selector, other))


def probes_reach_ports(objects: Objects) -> Iterator[str]:
    """What runs for long is asked whether it lives and whether it is ready, on ports that it has."""
    for each in workloads(objects):
        for container in each.containers:
            for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                probe = container.get(name)
                if probe is None:
                    if name != "startupProbe" and each.object["kind"] != "Job":
                        yield f"{each.name}: no {name}"
                    continue
                port = (probe.get("httpGet") or probe.get("grpc") or {}).get("port")
                if port not in each.ports and port not in each.ports.values():
                    yield f"{each.name}: {name} asks port {port}"


def monitors_find_endpoints(objects: Objects) -> Iterator[str]:
    """A ServiceMonitor selects one Service, a PodMonitor one workload, with the port that it names and the job that rules speak of."""
    for each in of_kind(objects, "ServiceMonitor", "PodMonitor"):
        selector, spaces = each["spec"]["selector"]["matchLabels"], namespace_of(each)
        if each["kind"] == "ServiceMonitor":
            services = [one for one in of_kind(objects, "Service") if selects(selector, one["metadata"]["labels"])]
            ports = [{port["name"] for port in one["spec"]["ports"]} for one in services if namespace_of(one) == spaces]
        else:
            ports = [set(one.ports) for one in _selected(objects, selector, spaces)]
        for endpoint in each["spec"].get("endpoints", each["spec"].get("podMetricsEndpoints", [])):
            if len(ports) != 1 or endpoint["port"] not in ports[0]:
                yield f"{label(each)}: port {endpoint['port']} is not one of {ports}"
            jobs = [one["replacement"] for one in endpoint.get("relabelings", []) if one.get("targetLabel") == "job"]
            if jobs != [f"peakgate-{selector['app.kubernetes.io/component']}"]:
                yield f"{label(each)}: its job is {jobs}"


def names_are_unique_and_placed(objects: Objects) -> Iterator[str]:
    """Each object says its namespace, where its kind has one, and none stands twice."""
    seen = set()
    for each in objects:
        if ("namespace" in each["metadata"]) == (each["kind"] in CLUSTER_WIDE):
            yield f"{label(each)}: namespace {each['metadata'].get('namespace')}"
        key = (each["kind"], namespace_of(each), each["metadata"]["name"])
        if key in seen:
            yield f"{label(each)}: stands twice"
        seen.add(key)
