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
            if found and not (_authority(configuration, webhook) or _writes_itself(found, configuration)):
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


def _authority(configuration: Manifest, webhook: Any) -> bool:
    annotations = configuration["metadata"].get("annotations", {})
    return bool(webhook["clientConfig"].get("caBundle") or annotations.get("cert-manager.io/inject-ca-from"))


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
            if (webhook["sideEffects"], webhook["matchPolicy"], webhook["admissionReviewVersions"]) != ("None", "Equivalent", ["v1"]):
                yield f"{label(configuration)}: side effects, match policy or versions"
            asked = webhook["namespaceSelector"]["matchExpressions"]
            names = [one for one in asked if (one["key"], one["operator"]) == ("kubernetes.io/metadata.name", "NotIn")]
            excluded = {name for one in names for name in one["values"]}
            if own - excluded:
                yield f"{label(configuration)}: looks at {sorted(own - excluded)}"
            if not any("ownerReferences" in one["expression"] for one in webhook["matchConditions"]):
                yield f"{label(configuration)}: looks at what controllers make"
            if any(rule["operations"] != ["CREATE"] or rule["scope"] != "Namespaced" for rule in webhook["rules"]):
                yield f"{label(configuration)}: more than creations in namespaces"


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
            known = {option for parameter in command.params for option in parameter.opts} if command else set()
            for word in container["args"]:
                if command and word.startswith("-") and word.partition("=")[0] not in known:
                    yield f"{each.name}: {' '.join(words)} has no option {word.partition('=')[0]}"
            for variable in container.get("env", []):
                if variable["name"].startswith("PEAKGATE_") and variable["name"] not in settings:
                    yield f"{each.name}: no setting {variable['name']}"
