"""The chart against the code that it runs: rights, kinds, paths and the file of rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.kubernetes.charts import VALUE_SETS, Manifest, named, rendered
from tests.integration.kubernetes.pods import of_kind
from tests.integration.kubernetes.rights import Right, wanted
from tests.integration.kubernetes.rules_admission import PATHS

from peakgate.hooks.kubernetes.kueue.checks import CONTROLLER, CheckMode, check_of
from peakgate.hooks.kubernetes.kueue.permissions import PERMISSIONS as KUEUE_PERMISSIONS
from peakgate.hooks.kubernetes.permissions import CERTIFICATES, NODES, PERMISSIONS, READS
from peakgate.hooks.kubernetes.routes import MUTATE, VALIDATE
from peakgate.hooks.kubernetes.rules import Mode, Rules
from peakgate.hooks.kubernetes.workloads import KINDS
from peakgate.hooks.rules_file import read_rules

CONFIGMAPS = ("", "configmaps", "get", False)


def rights(objects: Sequence[Manifest], component: str) -> set[Right]:
    """(group, resource, verb, only by name) of a component's roles."""
    roles = [
        each for each in of_kind(objects, "ClusterRole", "Role") if each["metadata"]["labels"]["app.kubernetes.io/component"] == component
    ]
    return {
        (group, resource, verb, "resourceNames" in rule)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_webhook_may_do_what_its_code_does_and_nothing_else() -> None:
    """With everything on; each value that takes a need away takes its rights away."""
    everything = rendered("kueue")
    assert rights(everything, "webhook") == wanted(PERMISSIONS, READS, NODES, CERTIFICATES)
    assert rights(rendered("warn-one-namespace"), "webhook") == wanted(PERMISSIONS, READS, NODES, CERTIFICATES) - {CONFIGMAPS}
    assert rights(rendered("production"), "webhook") == wanted(PERMISSIONS, READS, NODES) - {CONFIGMAPS}
    assert rights(rendered("production", "--set=webhook.readCluster=false"), "webhook") == wanted(PERMISSIONS, NODES)
    silent = rendered("production", "--set=webhook.readCluster=false", "--set=webhook.nodes=false")
    assert rights(silent, "webhook") == set()


@pytest.mark.parametrize("options", [(), ("--set=kueue.claims=false",), ("--set=kueue.nodes=false", "--set=kueue.claims=false")])
def test_the_controller_may_do_what_its_code_does_and_nothing_else(options: tuple[str, ...]) -> None:
    """Each option comes with its rights and goes with them."""
    objects = rendered("kueue", *options)
    (container,) = named(objects, "Deployment", "peakgate-kueue")["spec"]["template"]["spec"]["containers"]
    assert rights(objects, "kueue") == wanted(KUEUE_PERMISSIONS, *container["args"])


def test_the_lease_is_the_one_that_the_controller_asks_for() -> None:
    """The container's options name the empty Lease that the chart makes, and its role that Lease."""
    objects = rendered("kueue")
    (container,) = named(objects, "Deployment", "peakgate-kueue")["spec"]["template"]["spec"]["containers"]
    lease = next(of_kind(objects, "Lease"))["metadata"]
    assert {f"--lease={lease['name']}", f"--namespace={lease['namespace']}"} <= set(container["args"])
    assert named(objects, "Role", "peakgate-kueue")["rules"][0]["resourceNames"] == [lease["name"]]


def test_the_admission_check_is_the_controllers() -> None:
    """Its controller's name is the code's, and its mode the value's."""
    check = check_of(named(rendered("kueue"), "AdmissionCheck", "peakgate"), CheckMode.off)
    assert check is not None
    assert (check.name, check.mode) == ("peakgate", CheckMode.enforce)
    assert CONTROLLER == "peakgate.io/kueue"


@pytest.mark.parametrize("values", VALUE_SETS)
def test_the_webhook_reads_the_cluster_only_with_the_right_to(values: str) -> None:
    """The options and the rules of the role come together."""
    for options in ((), ("--set=webhook.readCluster=false",), ("--set=webhook.nodes=false",)):
        objects = rendered(values, *options)
        (container,) = named(objects, "Deployment", "peakgate-webhook")["spec"]["template"]["spec"]["containers"]
        resources = {right[1] for right in rights(objects, "webhook")}
        assert ("--read-cluster" in container["args"]) is ("namespaces" in resources)
        assert ("--nodes" in container["args"]) is ("nodes" in resources)


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
    rules = read_rules(path, Rules)
    assert rules.mode is (Mode.enforce if values == "kueue" else Mode.warn)
    if values == "kueue":
        assert rules.mode_of("notebooks-1") is Mode.off
        assert rules.may_override("somebody", ["gpu-operators"])


def test_a_bare_off_is_off(tmp_path: Path) -> None:
    """YAML makes false of it, which both programs must read as the mode."""
    values, rules = tmp_path / "values.yaml", tmp_path / "rules.yaml"
    values.write_text("mode: off\nwebhook: {rules: {namespaces: [{names: [a], mode: off}]}}\nkueue: {enabled: true, mode: off}\n")
    objects = rendered("", f"--values={values}")
    rules.write_text(named(objects, "ConfigMap", "peakgate-webhook")["data"]["rules.yaml"])
    assert (read_rules(rules, Rules).mode, read_rules(rules, Rules).mode_of("a")) == (Mode.off, Mode.off)
    check = check_of(named(objects, "AdmissionCheck", "peakgate"), CheckMode.warn)
    assert check is not None
    assert check.mode is CheckMode.off
