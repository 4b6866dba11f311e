"""What schemas miss about the webhook configurations and about the commands in the containers. Each rule yields one line for each fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import typer
from tests.integration.kubernetes.charts import Manifest
from tests.integration.kubernetes.pods import Workload, label, namespace_of, of_kind, selects, workloads

from peakgate.client.app import app_for
from peakgate.server.settings import Settings

Objects = Sequence[Manifest]
PATHS = {"ValidatingWebhookConfiguration": "/validate", "MutatingWebhookConfiguration": "/mutate"}
# The webhook answers within two seconds; a longer wait of the API server only costs the person who waits.
SHORTEST_SECONDS, LONGEST_SECONDS = 3, 10


def webhooks_are_served(objects: Objects) -> Iterator[str]:
    """A configuration's Service and port lead to the webhook's pods, by their path, with an authority that somebody writes in."""
    for configuration in of_kind(objects, *PATHS):
        for webhook in configuration["webhooks"]:
            client = webhook["clientConfig"].get("service", {})
            found = _behind(objects, client)
            if not found or found.component != "webhook":
                yield f"{label(configuration)}: nothing serves {client}"
            if client.get("path") != PATHS[configuration["kind"]]:
                yield f"{label(configuration)}: path {client.get('path')}"
            if found and not (_authority(objects, configuration, webhook) or _writes_itself(found, configuration)):
                yield f"{label(configuration)}: nobody writes the authority"


def _behind(objects: Objects, client: Any) -> Workload | None:
    for service in of_kind(objects, "Service"):
        if (service["metadata"]["name"], namespace_of(service)) != (client.get("name"), client.get("namespace")):
            continue
        targets = [port["targetPort"] for port in service["spec"]["ports"] if port["port"] == client.get("port", 443)]
        for each in workloads(objects):
            if targets == ["webhook"] and selects(service["spec"]["selector"], each.labels) and "webhook" in each.ports:
                return each
    return None


def _authority(objects: Objects, configuration: Manifest, webhook: Any) -> bool:
    """Stated, or written in by cert-manager out of a certificate that is there."""
    injected = configuration["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")
    certificates = {f"{namespace_of(each)}/{each['metadata']['name']}" for each in of_kind(objects, "Certificate")}
    return bool(webhook["clientConfig"].get("caBundle")) or injected in certificates


def _writes_itself(found: Workload, configuration: Manifest) -> bool:
    return f"--webhook-configuration={configuration['metadata']['name']}" in found.containers[0]["args"]


def webhooks_cannot_block(objects: Objects) -> Iterator[str]:
    """Jobs are admitted when no webhook answers, soon, and the webhook never stands before its own pods or the system's."""
    own = {each.namespace for each in workloads(objects)} | {"kube-system"}
    for configuration in of_kind(objects, *PATHS):
        for webhook in configuration["webhooks"]:
            if webhook["failurePolicy"] != "Ignore":
                yield f"{label(configuration)}: failurePolicy {webhook['failurePolicy']}"
            if not SHORTEST_SECONDS <= webhook["timeoutSeconds"] <= LONGEST_SECONDS:
                yield f"{label(configuration)}: timeoutSeconds {webhook['timeoutSeconds']}"
            said = (webhook["sideEffects"], webhook["matchPolicy"], webhook["admissionReviewVersions"])
            if said != ("NoneOnDryRun", "Equivalent", ["v1"]):
                yield f"{label(configuration)}: side effects, match policy or versions"
            asked = webhook["namespaceSelector"]["matchExpressions"]
            names = [one for one in asked if (one["key"], one["operator"]) == ("kubernetes.io/metadata.name", "NotIn")]
            excluded = {name for one in names for name in one["values"]}
            if own - excluded:
                yield f"{label(configuration)}: looks at {sorted(own - excluded)}"
            if not any("ownerReferences" in one["expression"] for one in webhook["matchConditions"]):
                yield f"{label(configuration)}: looks at what controllers make"
            for rule in webhook["rules"]:
                changes = ["UPDATE"] if rule["resources"] == ["cronjobs"] else []
                if rule["operations"] != ["CREATE", *changes] or rule["scope"] != "Namespaced":
                    yield f"{label(configuration)}: {rule['operations']} of {rule['resources']}"


def certificates_are_for_the_service(objects: Objects) -> Iterator[str]:
    """Whoever makes the webhook's certificate makes it for the name that the API server asks for, and it arrives where it is read."""
    hosts = {f"{each['metadata']['name']}.{namespace_of(each)}.svc" for each in of_kind(objects, "Service")}
    secrets = {(namespace_of(each), each["metadata"]["name"]) for each in of_kind(objects, "Secret")}
    for each in of_kind(objects, "Certificate"):
        secrets.add((namespace_of(each), each["spec"]["secretName"]))
        if not set(each["spec"]["dnsNames"]) & hosts:
            yield f"{label(each)}: for {each['spec']['dnsNames']}"
    for workload in workloads(objects):
        mounted = {(workload.namespace, volume["secret"]["secretName"]) for volume in workload.pod.get("volumes", []) if "secret" in volume}
        written = {tuple(value.split("/")) for value in _told(workload, "--cert-secret")}
        if (mounted | written) - secrets:
            yield f"{workload.name}: no Secret {sorted((mounted | written) - secrets)}"
        if set(_told(workload, "--service")) - hosts:
            yield f"{workload.name}: no Service {_told(workload, '--service')}"


def servers_are_there(objects: Objects) -> Iterator[str]:
    """Whom a program asks is a Service's name with a port that it has; whose Lease it takes is there."""
    ports = {
        f"{each['metadata']['name']}.{namespace_of(each)}.svc:{port['port']}"
        for each in of_kind(objects, "Service")
        for port in each["spec"]["ports"]
        if port["name"] == "grpc"
    }
    leases = {each["metadata"]["name"] for each in of_kind(objects, "Lease")}
    for workload in workloads(objects):
        if set(_told(workload, "--server")) - ports:
            yield f"{workload.name}: no server {_told(workload, '--server')}"
        if set(_told(workload, "--lease")) - leases:
            yield f"{workload.name}: no Lease {_told(workload, '--lease')}"


def _told(workload: Workload, option: str) -> list[str]:
    words = [word.partition("=") for container in workload.containers for word in container.get("args", [])]
    return [value for name, _, value in words if name == option]


@cache
def _command() -> Any:
    return typer.main.get_command(app_for([]))


def arguments_exist(objects: Objects) -> Iterator[str]:
    """Each container's command is one of peakgate's with options that it has; each PEAKGATE_* variable is a setting."""
    settings = {f"PEAKGATE_{name.upper()}" for name in Settings.model_fields}
    for each in workloads(objects):
        for container in each.containers:
            command: Any = _command()
            words = [word for word in container["args"] if not word.startswith("-")]
            for word in words:
                command = getattr(command, "commands", {}).get(word)
                if command is None:
                    yield f"{each.name}: no command {' '.join(words)}"
                    break
            known = (
                {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} if command else set()
            )
            for word in container["args"]:
                if command and word.startswith("-") and word.partition("=")[0] not in known:
                    yield f"{each.name}: {' '.join(words)} has no option {word.partition('=')[0]}"
            for variable in container.get("env", []):
                if variable["name"].startswith("PEAKGATE_") and variable["name"] not in settings:
                    yield f"{each.name}: no setting {variable['name']}"
