"""Each rule about manifests finds what it is there for: a broken copy of the example "kueue", which is sound."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.kubernetes import rules_admission, rules_safety, rules_wiring
from tests.integration.kubernetes.charts import MINORS, rendered
from tests.integration.kubernetes.rules import RULES, Rule
from tests.integration.kubernetes.schemas import schema_problems


def _object(objects: list[Any], kind: str, name: str) -> Any:
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))


def _container(objects: list[Any], kind: str, name: str) -> Any:
    return _object(objects, kind, name)["spec"]["template"]["spec"]["containers"][0]


def broken(change: Callable[[list[Any]], object], values: str = "kueue") -> list[Any]:
    """The objects of an example after a change."""
    objects = copy.deepcopy(list(rendered(values)))
    change(objects)
    return objects


VALIDATING = ("ValidatingWebhookConfiguration", "peakgate")
SERVER, WEBHOOK, AGENT = ("Deployment", "peakgate-server"), ("Deployment", "peakgate-webhook"), ("DaemonSet", "peakgate-agent")
BREAKS: tuple[tuple[Rule, Callable[[list[Any]], object]], ...] = (
    (rules_wiring.selectors_match, lambda all_: _object(all_, *SERVER)["spec"]["selector"]["matchLabels"].update(x="y")),
    (
        rules_wiring.selectors_match,
        lambda all_: _object(all_, *SERVER)["spec"]["selector"]["matchLabels"].pop("app.kubernetes.io/component"),
    ),
    (rules_wiring.selectors_match, lambda all_: _object(all_, "Service", "peakgate-webhook")["spec"]["selector"].update(x="y")),
    (
        rules_wiring.selectors_match,
        lambda all_: _object(all_, "PodDisruptionBudget", "peakgate-webhook")["spec"]["selector"]["matchLabels"].clear(),
    ),
    (rules_wiring.selectors_match, lambda all_: _object(all_, "NetworkPolicy", "peakgate-agent")["metadata"].update(namespace="peakgate")),
    (rules_wiring.budgets_let_nodes_drain, lambda all_: _object(all_, *WEBHOOK)["spec"].update(replicas=1)),
    (
        rules_wiring.budgets_let_nodes_drain,
        lambda all_: _object(all_, "PodDisruptionBudget", "peakgate-kueue")["spec"].update(maxUnavailable=0),
    ),
    (rules_wiring.ports_are_named, lambda all_: _container(all_, *SERVER)["ports"][0].pop("name")),
    (rules_wiring.ports_are_named, lambda all_: _object(all_, "Service", "peakgate-server")["spec"]["ports"][0].update(targetPort="gprc")),
    (rules_wiring.policies_name_ports, lambda all_: _object(all_, "NetworkPolicy", "peakgate-server")["spec"]["ingress"].pop()),
    (
        rules_wiring.policies_name_ports,
        lambda all_: _object(all_, "NetworkPolicy", "peakgate-kueue")["spec"]["egress"][1]["ports"][0].update(port="http2"),
    ),
    (rules_wiring.probes_reach_ports, lambda all_: _container(all_, *WEBHOOK)["readinessProbe"]["httpGet"].update(port="metric")),
    (rules_wiring.probes_reach_ports, lambda all_: _container(all_, *SERVER)["startupProbe"]["grpc"].update(port=50051)),
    (rules_wiring.probes_reach_ports, lambda all_: _container(all_, *AGENT).pop("livenessProbe")),
    (
        rules_wiring.monitors_find_endpoints,
        lambda all_: _object(all_, "ServiceMonitor", "peakgate-server")["spec"]["endpoints"][0].update(port="metrics"),
    ),
    (
        rules_wiring.monitors_find_endpoints,
        lambda all_: _object(all_, "PodMonitor", "peakgate-agent")["spec"]["podMetricsEndpoints"][0]["relabelings"].pop(0),
    ),
    (
        rules_wiring.monitors_find_endpoints,
        lambda all_: _object(all_, "PodMonitor", "peakgate-agent")["metadata"].update(namespace="peakgate"),
    ),
    (rules_wiring.names_are_unique_and_placed, lambda all_: _object(all_, *SERVER)["metadata"].pop("namespace")),
    (rules_wiring.names_are_unique_and_placed, lambda all_: all_.append(all_[0])),
    (rules_safety.images_have_no_host, lambda all_: _container(all_, *SERVER).update(image="registry.example/peakgate:1")),
    (rules_safety.images_have_no_host, lambda all_: _container(all_, *SERVER).update(image="peakgate")),
    (
        rules_safety.pods_are_restricted,
        lambda all_: _object(all_, *SERVER)["spec"]["template"]["spec"]["securityContext"].update(runAsUser=0),
    ),
    (rules_safety.pods_are_restricted, lambda all_: _object(all_, *WEBHOOK)["spec"]["template"]["spec"].update(hostPID=True)),
    (rules_safety.pods_are_restricted, lambda all_: _container(all_, *AGENT)["securityContext"].update(privileged=True)),
    (rules_safety.pods_are_restricted, lambda all_: _container(all_, *AGENT)["securityContext"]["capabilities"].update(add=["SYS_ADMIN"])),
    (rules_safety.pods_are_restricted, lambda all_: _container(all_, *AGENT)["volumeMounts"][0].pop("readOnly")),
    (rules_safety.pods_are_restricted, lambda all_: _container(all_, *SERVER)["resources"]["limits"].pop("memory")),
    (rules_safety.volumes_are_mounted, lambda all_: _object(all_, *SERVER)["spec"]["template"]["spec"]["volumes"].pop()),
    (
        rules_safety.volumes_are_mounted,
        lambda all_: _object(all_, "ConfigMap", "peakgate-webhook")["metadata"].update(name="peakgate-rules"),
    ),
    (
        rules_safety.accounts_are_bound,
        lambda all_: _object(all_, "ClusterRoleBinding", "peakgate-webhook")["roleRef"].update(name="peakgate-server"),
    ),
    (
        rules_safety.accounts_are_bound,
        lambda all_: _object(all_, "ClusterRoleBinding", "peakgate-agent")["subjects"][0].update(namespace="peakgate"),
    ),
    (
        rules_safety.accounts_are_bound,
        lambda all_: _object(all_, *SERVER)["spec"]["template"]["spec"].update(automountServiceAccountToken=True),
    ),
    (rules_safety.roles_are_narrow, lambda all_: _object(all_, "ClusterRole", "peakgate-webhook")["rules"][0].update(verbs=["*"])),
    (rules_safety.roles_are_narrow, lambda all_: _object(all_, "Role", "peakgate-webhook")["rules"][0].pop("resourceNames")),
    (rules_safety.roles_are_narrow, lambda all_: _object(all_, "Role", "peakgate-kueue")["rules"][0].update(verbs=["create"])),
    (rules_safety.namespaces_admit_the_pods, lambda all_: _object(all_, *WEBHOOK)["metadata"].update(namespace="peakgate-agent")),
    (
        rules_admission.webhooks_are_served,
        lambda all_: _object(all_, *VALIDATING)["webhooks"][0]["clientConfig"]["service"].update(port=9443),
    ),
    (
        rules_admission.webhooks_are_served,
        lambda all_: _object(all_, *VALIDATING)["webhooks"][0]["clientConfig"]["service"].update(path="/mutate"),
    ),
    (
        rules_admission.webhooks_are_served,
        lambda all_: _object(all_, "Service", "peakgate-webhook")["spec"]["ports"][0].update(targetPort="metrics"),
    ),
    (rules_admission.webhooks_are_served, lambda all_: _object(all_, *VALIDATING)["metadata"].update(name="peakgate-other")),
    (rules_admission.webhooks_cannot_block, lambda all_: _object(all_, *VALIDATING)["webhooks"][0].update(failurePolicy="Fail")),
    (rules_admission.webhooks_cannot_block, lambda all_: _object(all_, *VALIDATING)["webhooks"][0].update(timeoutSeconds=30)),
    (rules_admission.webhooks_cannot_block, lambda all_: _object(all_, *VALIDATING)["webhooks"][0].update(sideEffects="None")),
    (
        rules_admission.webhooks_cannot_block,
        lambda all_: _object(all_, *VALIDATING)["webhooks"][0]["namespaceSelector"]["matchExpressions"].pop(0),
    ),
    (rules_admission.webhooks_cannot_block, lambda all_: _object(all_, *VALIDATING)["webhooks"][0]["matchConditions"].pop()),
    (rules_admission.arguments_exist, lambda all_: _container(all_, *AGENT)["args"].append("--sever=x")),
    (rules_admission.arguments_exist, lambda all_: _container(all_, *SERVER).update(args=["server"])),
    (rules_admission.arguments_exist, lambda all_: _container(all_, *SERVER)["env"].append({"name": "PEAKGATE_HOTS", "value": "x"})),
    (
        rules_admission.certificates_are_for_the_service,
        lambda all_: _tell(_container(all_, *WEBHOOK), "--cert-secret", "peakgate/other"),
    ),
    (
        rules_admission.certificates_are_for_the_service,
        lambda all_: _tell(_container(all_, *WEBHOOK), "--service", "peakgate.peakgate.svc"),
    ),
    (rules_admission.servers_are_there, lambda all_: _tell(_container(all_, *AGENT), "--server", "peakgate-server:50551")),
    (
        rules_admission.servers_are_there,
        lambda all_: _tell(_container(all_, "Deployment", "peakgate-kueue"), "--lease", "other"),
    ),
)


def _tell(container: Any, option: str, value: str) -> None:
    """Another value of an option."""
    container["args"] = [f"{option}={value}" if word.startswith(f"{option}=") else word for word in container["args"]]


OTHER_BREAKS: tuple[tuple[Rule, Callable[[list[Any]], object]], ...] = (
    (
        rules_admission.webhooks_are_served,
        lambda all_: _object(all_, *VALIDATING)["metadata"]["annotations"].update({"cert-manager.io/inject-ca-from": "peakgate/x"}),
    ),
    (
        rules_admission.certificates_are_for_the_service,
        lambda all_: _object(all_, "Certificate", "peakgate-webhook")["spec"].update(dnsNames=["peakgate-webhook.other.svc"]),
    ),
    (
        rules_admission.certificates_are_for_the_service,
        lambda all_: _object(all_, "Certificate", "peakgate-webhook")["spec"].update(secretName="other"),
    ),
)
"""Of what the example "production" alone has."""


@pytest.mark.parametrize(
    ("values", "rule", "change"),
    [*(("kueue", *each) for each in BREAKS), *(("production", *each) for each in OTHER_BREAKS)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_each_rule_bites(values: str, rule: Rule, change: Callable[[list[Any]], object]) -> None:
    """A broken manifest is found by its rule."""
    assert list(rule(rendered(values))) == []
    assert list(rule(broken(change, values))) != []


SCHEMA_BREAKS: tuple[Callable[[list[Any]], object], ...] = (
    lambda all_: _container(all_, *SERVER).update(comand=["x"]),
    lambda all_: _object(all_, *SERVER)["spec"].update(replicas="two"),
    lambda all_: _object(all_, "ServiceMonitor", "peakgate-server")["spec"]["endpoints"][0].update(portt="http"),
    lambda all_: _object(all_, "PodMonitor", "peakgate-agent")["spec"]["podMetricsEndpoints"][0].update(interval="15 seconds"),
    lambda all_: _object(all_, "AdmissionCheck", "peakgate")["spec"].pop("controllerName"),
)


@pytest.mark.parametrize("change", SCHEMA_BREAKS)
def test_the_schemas_bite(change: Callable[[list[Any]], object]) -> None:
    """Misspelt and wrong fields of Kubernetes' kinds and of the operators' are found."""
    assert list(schema_problems(broken(change), MINORS[-1])) != []


def test_every_rule_is_shown_to_bite() -> None:
    """A rule without a broken manifest here could be one that finds nothing."""
    assert {rule for rule, _ in (*BREAKS, *OTHER_BREAKS)} == set(RULES)
