"""The chart: helm renders it for three value sets and three Kubernetes minors, every object is valid, and what schemas miss holds."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml
from tests.integration.kubernetes.charts import CHART, EXAMPLES, MINORS, VALUE_SETS, named, rendered, run, template
from tests.integration.kubernetes.rules import faults
from tests.integration.kubernetes.schemas import schema_problems

from peakgate.server.settings import Settings


def test_helm_lint_has_nothing_to_say() -> None:
    """Not even a warning."""
    done = run("helm", "lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("values", VALUE_SETS)
def test_each_value_set_is_valid_on_each_minor(values: str, minor: str) -> None:
    """Kubernetes' own kinds by its strict schemas of that minor, the operators' by their CRDs."""
    objects = rendered(values, f"--kube-version={minor}.0")
    assert list(schema_problems(objects, minor)) == []


@pytest.mark.parametrize("values", ["", *VALUE_SETS])
def test_each_value_set_keeps_every_rule(values: str) -> None:
    """Selectors, ports, probes, accounts, roles, security, webhooks, commands."""
    assert faults(rendered(values)) == []


def test_another_name_of_the_release_keeps_every_rule() -> None:
    """Two releases in one cluster have no object in common, and a long name is cut without tearing them apart."""
    objects = rendered("kueue", "--set=agent.namespace=team-agents", release="a-rather-long-release-name-of-a-large-department")
    assert faults(objects) == []
    keys = [{(each["kind"], each["metadata"]["name"]) for each in found} for found in (objects, rendered("kueue"))]
    assert keys[0] & keys[1] == {("AdmissionCheck", "peakgate")}


def test_nothing_of_an_operator_without_the_operator() -> None:
    """On a cluster without the Prometheus operator the default values bring only kinds of Kubernetes itself."""
    assert {each["apiVersion"] for each in rendered(operators=()) if "." in each["apiVersion"]} <= {
        "rbac.authorization.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
    }


def test_alerts_link_to_the_runbook_of_the_site() -> None:
    """Where the value says that it can be read; without it they name the file."""
    for options, want in (((), "docs/runbook.md"), (("--set=monitoring.runbook=https://wiki.example/gpu",), "https://wiki.example/gpu")):
        alerts = named(rendered("production", *options), "PrometheusRule", "peakgate-alerting")["spec"]["groups"]
        links = [rule["annotations"]["runbook_url"] for group in alerts for rule in group["rules"]]
        assert len(links) > 10
        assert {link.partition("#")[0] for link in links} == {want}
        assert all(link.partition("#")[2].startswith("peakgate") for link in links)


def test_nobody_is_paged_for_a_controller_that_was_switched_off() -> None:
    """Its alerts are there exactly where it is."""
    for value, want in (
        ("true", ["peakgate-alerting", "peakgate-kueue", "peakgate-recording"]),
        ("false", ["peakgate-alerting", "peakgate-recording"]),
    ):
        rules = [each for each in rendered("production", f"--set=kueue.enabled={value}") if each["kind"] == "PrometheusRule"]
        assert sorted(each["metadata"]["name"] for each in rules) == want
        alerts = [rule.get("alert", "") for each in rules for group in each["spec"]["groups"] for rule in group["rules"]]
        assert ("PeakgateKueueDown" in alerts) is (value == "true")


def test_an_old_cluster_is_refused() -> None:
    """Before 1.30 the webhook's match conditions are not stable."""
    done = template("--kube-version=1.29.0")
    assert done.returncode != 0
    assert "1.30" in done.stderr


BAD_VALUES = {
    "mode=loud": "/mode",
    "webhook.namespace=team-a": "/webhook",
    "webhook.failurePolicy=Maybe": "/webhook/failurePolicy",
    "webhook.timeoutSeconds=60": "/webhook/timeoutSeconds",
    "webhook.excludedNamespaces={team-b}": "/webhook/excludedNamespaces",
    "server.settings.covrage=0.9": "/server/settings",
    "image.tag=latest": "/image/tag",
    "image.digest=sha256:12": "/image/digest",
    "server.replicas=2": "SQLite serves one server",
    "webhook.certificates.source=secret": "existingSecret",
}


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_bad_value_is_refused_by_its_name(value: str) -> None:
    """A typing error never becomes a default."""
    done = template(f"--set={value}")
    assert done.returncode != 0
    assert BAD_VALUES[value] in done.stderr


def test_the_schema_knows_every_value_and_every_setting() -> None:
    """values.yaml has each property of values.schema.json and no other; the settings are the service's but for what the chart sets."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) - {"global"} == set(values)
    for name, value in values.items():
        assert set(schema["properties"][name].get("properties", {})) == (set(value) if isinstance(value, dict) else set()), name
    (pattern,) = schema["properties"]["server"]["properties"]["settings"]["patternProperties"]
    own = {"host", "grpc_port", "http_port", "database_url", "log_level", "log_json"}
    assert set(pattern.strip("^$()").split("|")) == set(Settings.model_fields) - own


def test_the_registry_and_the_digest_are_values() -> None:
    """The image of every pod follows them."""
    digest = "sha256:" + "0" * 64
    objects = rendered("production", "--set=image.registry=registry.example/team/", f"--set=image.digest={digest}", "--set=image.tag=1.2.3")
    images = {
        one["image"]
        for each in objects
        if each["kind"] in {"Deployment", "DaemonSet", "Job"}
        for one in each["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"registry.example/team/peakgate:1.2.3@{digest}"}


def test_the_agent_may_have_its_small_image() -> None:
    """Under the same registry and tag."""
    objects = rendered(
        "production", "--set=image.registry=registry.example", "--set=agent.repository=peakgate-agent", "--set=image.tag=1.2.3"
    )
    (container,) = named(objects, "DaemonSet", "peakgate-agent")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/peakgate-agent:1.2.3"


def test_the_migration_runs_before_and_goes_by_itself() -> None:
    """It is a hook before install and upgrade; Helm never removes hooks, so the Job ends its own life also when it fails."""
    job = named(rendered("production"), "Job", "peakgate-migration")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert [each["kind"] for each in rendered("warn-one-namespace") if each["kind"] == "Job"] == []


def test_warning_in_one_namespace_touches_nothing_else() -> None:
    """The example of the ten minutes: one namespace, mode warn, no pod on the nodes, no rights on what it does not look at."""
    objects = rendered("warn-one-namespace", operators=())
    (webhook,) = named(objects, "ValidatingWebhookConfiguration", "peakgate")["webhooks"]
    asked = webhook["namespaceSelector"]["matchExpressions"]
    assert {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a"]} in asked
    assert yaml.safe_load(named(objects, "ConfigMap", "peakgate-webhook")["data"]["rules.yaml"])["mode"] == "warn"
    assert {each["kind"] for each in objects} & {
        "DaemonSet",
        "MutatingWebhookConfiguration",
        "PersistentVolumeClaim",
        "Namespace",
        "Job",
    } == set()


def test_an_uninstall_leaves_nothing_behind() -> None:
    """Helm removes what it made: nothing is kept but a volume on request, and no role lets a pod make objects that Helm does not know."""
    for values in VALUE_SETS:
        policies = [each for each in rendered(values) if "helm.sh/resource-policy" in each["metadata"].get("annotations", {})]
        assert policies == []
    kept = rendered("", "--set=database.persistence.keep=true")
    assert [each["kind"] for each in kept if "helm.sh/resource-policy" in each["metadata"].get("annotations", {})] == [
        "PersistentVolumeClaim"
    ]


def test_the_webhook_configuration_is_made_last() -> None:
    """Helm installs by kind: the API server is told of the webhook when all that it needs is there."""
    assert rendered("warn-one-namespace", operators=())[-1]["kind"] == "ValidatingWebhookConfiguration"


def test_rules_and_dashboards_arrive_as_they_are() -> None:
    """Each file of rules is the spec of a PrometheusRule, each dashboard the content of a ConfigMap that Grafana's sidecar finds."""
    objects = rendered("production", "--set=kueue.enabled=true")
    for path in sorted((CHART / "files").iterdir()):
        if path.suffix == ".yml":
            assert named(objects, "PrometheusRule", f"peakgate-{path.stem}")["spec"] == yaml.safe_load(path.read_text())
        else:
            found = named(objects, "ConfigMap", f"peakgate-dashboard-{path.stem}")
            assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
            assert json.loads(found["data"][path.name]) == json.loads(path.read_text())


def test_the_notes_say_the_way_out() -> None:
    """Whoever installs reads the mode, the namespaces and how to get it out of the way."""
    done = run("helm", "install", "peakgate", str(CHART), "--dry-run=client", f"--values={EXAMPLES / 'warn-one-namespace.yaml'}")
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    assert 'mode "warn"' in notes
    assert "team-a" in notes
    assert "kubectl delete validatingwebhookconfiguration peakgate" in notes
    assert "in one server's pod" in notes  # these values have no volume
    kept = run("helm", "install", "peakgate", str(CHART), "--dry-run=client").stdout.partition("NOTES:")[2]
    assert "in one server's volume" in kept
