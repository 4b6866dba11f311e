"""The chart against the code that it runs: rights, kinds, paths and the file of rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.kubernetes.charts import VALUE_SETS, Manifest, named, rendered
from tests.integration.kubernetes.pods import of_kind
from tests.integration.kubernetes.rules_admission import PATHS

from peakgate.hooks.kubernetes.permissions import CERTIFICATES, PERMISSIONS, READS
from peakgate.hooks.kubernetes.routes import MUTATE, VALIDATE
from peakgate.hooks.kubernetes.rules import Mode, read_rules
from peakgate.hooks.kubernetes.workloads import KINDS

Right = tuple[str, str, str, bool]
CONFIGMAPS = ("", "configmaps", "get", False)


def rights(objects: Sequence[Manifest], component: str) -> set[Right]:
    """(group, resource, verb, only by name) of a component's roles."""
    roles = [
        each for each in of_kind(objects, "ClusterRole", "Role") if each["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    return {
        (group, resource, verb, "resourceNames" in rule)
        for role in roles
        if role["metadata"]["labels"]["app.kubernetes.io/component"] == component
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(*parts: str) -> set[Right]:
    """The same of what the code says that it asks for."""
    return {(row.group, row.resource, verb, row.named) for row in PERMISSIONS if row.part in parts for verb in row.verbs}


def test_the_webhook_may_do_what_its_code_does_and_nothing_else() -> None:
    """With everything on; each value that takes a need away takes its rights away."""
    everything = rendered("kueue")
    assert rights(everything, "webhook") == asked(READS, CERTIFICATES)
    assert rights(rendered("warn-one-namespace"), "webhook") == asked(READS, CERTIFICATES) - {CONFIGMAPS}
    assert rights(rendered("production"), "webhook") == asked(READS) - {CONFIGMAPS}
    silent = rendered("production", "--set=webhook.readCluster=false")
    assert rights(silent, "webhook") == set()


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_webhook_reads_the_cluster_only_with_the_right_to(values: str) -> None:
    """The option and the role come together."""
    for options in ((), ("--set=webhook.readCluster=false",)):
        objects = rendered(values, *options)
        (container,) = named(objects, "Deployment", "peakgate-webhook")["spec"]["template"]["spec"]["containers"]
        assert ("--read-cluster" in container["args"]) is ("namespaces" in {right[1] for right in rights(objects, "webhook")})


def test_the_webhook_is_asked_about_the_kinds_that_it_judges() -> None:
    """No kind more, which would cost time for nothing, and none less. A kind's resource is its plural."""
    for kind in PATHS:
        (webhook,) = named(rendered("kueue"), kind, "peakgate")["webhooks"]
        found = {(group, resource) for rule in webhook["rules"] for group in rule["apiGroups"] for resource in rule["resources"]}
        assert found == {(group, f"{kind.lower()}s") for group, kind in KINDS}


def test_the_paths_are_those_of_the_code() -> None:
    """The rule on served webhooks knows the listener's paths."""
    assert PATHS == {"ValidatingWebhookConfiguration": VALIDATE, "MutatingWebhookConfiguration": MUTATE}


@pytest.mark.parametrize("values", ["", *VALUE_SETS])
def test_the_rules_are_a_file_that_the_webhook_reads(values: str, tmp_path: Path) -> None:
    """The ConfigMap's file has no fault, and its mode is the value's."""
    path = tmp_path / "rules.yaml"
    path.write_text(named(rendered(values), "ConfigMap", "peakgate-webhook")["data"]["rules.yaml"])
    rules = read_rules(path)
    assert rules.mode is (Mode.enforce if values == "kueue" else Mode.warn)
    if values == "kueue":
        assert rules.mode_of("notebooks-1") is Mode.off
        assert rules.may_override("somebody", ["gpu-operators"])
