"""A real kube-apiserver asks the real webhook. Collected when PEAKGATE_KUBE_APISERVER names the program; Debian has its etcd."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.admission_reviews import APIS, FITS, KINDS, RULES, SPEC, T4, TOO_LARGE, stating
from tests.bench.programs import Program
from tests.integration.kubernetes.real_api_server import ApiServer, a_definition, api_server
from tests.webhooks import RunningWebhook, running_webhook

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SETTLE_SECONDS = 2.0
"""Until an API server has read a configuration that was just made."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With two namespaces and every kind."""
    with api_server(tmp_path_factory.mktemp("api")) as found:
        for name in ("team-a", "enforced-a"):
            assert found.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
        for kind in KINDS:
            group, version, plural = APIS[kind]
            if group not in ("", "batch"):
                body = a_definition(group, version, kind.removeprefix("Volcano"), plural)
                assert found.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)[0] == 201
        time.sleep(SETTLE_SECONDS)
        yield found


@pytest.fixture(scope="module")
def asked(api: ApiServer, service: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWebhook]:
    """A webhook that the API server asks."""
    with running_webhook(tmp_path_factory.mktemp("asked"), RULES, "--server", service.target, "--no-beside") as webhook:
        bundle = base64.b64encode((webhook.folder / "tls" / "ca.crt").read_bytes()).decode()
        rules = [
            {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [plural], "scope": "Namespaced"}
            for group, _, plural in (APIS[kind] for kind in KINDS)
        ]
        hook = {
            "name": "jobs.peakgate.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "NoneOnDryRun",
            "failurePolicy": "Ignore",
            "timeoutSeconds": 3,
            "clientConfig": {"url": f"https://localhost:{webhook.port}/validate", "caBundle": bundle},
            "rules": rules,
        }
        assert api.call("POST", CONFIGURATIONS, {"metadata": {"name": "peakgate"}, "webhooks": [hook]})[0] == 201
        time.sleep(SETTLE_SECONDS)
        yield webhook
        api.call("DELETE", f"{CONFIGURATIONS}/peakgate")


def create(api: ApiServer, kind: str, namespace: str, job: Any, *, dry_run: bool = False) -> tuple[int, dict[str, Any], list[str]]:
    """Creates a workload that states a job."""
    group, version, plural = APIS[kind]
    item = stating(kind, job, product=T4)
    item["metadata"] = {"generateName": "x-"} | {name: value for name, value in item["metadata"].items() if name == "annotations"}
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return api.call("POST", f"{path}/namespaces/{namespace}/{plural}{'?dryRun=All' if dry_run else ''}", item)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_allowed_warned_and_denied(api: ApiServer, asked: RunningWebhook, kind: str) -> None:
    """As kubectl would show it."""
    status, created, warnings = create(api, kind, "team-a", FITS)
    assert (status, warnings) == (201, [])
    assert created["metadata"]["uid"]
    status, _, warnings = create(api, kind, "team-a", TOO_LARGE)
    assert status == 201
    assert any("too few" in each for each in warnings)
    status, refused, _ = create(api, kind, "enforced-a", TOO_LARGE)
    if kind == "TrainJob":  # its runtime is not known to this webhook
        assert status == 201
    else:
        assert status == 403
        assert "too few" in refused["message"]
    assert "fault" not in asked.log


def test_a_cron_job_is_judged_again_when_its_job_changes(api: ApiServer, asked: RunningWebhook) -> None:
    """And only then: another schedule of a job that does not fit passes."""
    status, created, _ = create(api, "CronJob", "enforced-a", FITS)
    assert status == 201
    path = f"/apis/batch/v1/namespaces/enforced-a/cronjobs/{created['metadata']['name']}"
    annotations = created["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"]
    annotations[SPEC] = json.dumps(TOO_LARGE)
    status, refused, _ = api.call("PUT", path, created)
    assert status == 403
    assert "too few" in refused["message"]
    annotations[SPEC] = json.dumps(FITS)
    created["spec"]["schedule"] = "@hourly"
    assert api.call("PUT", path, created)[0] == 200
    assert asked.process.poll() is None


def test_a_dry_run_stores_nothing_and_the_audit_log_knows(api: ApiServer, asked: RunningWebhook) -> None:
    """Denied as well; the verdict is in the audit log under the webhook's name."""
    assert create(api, "Job", "enforced-a", TOO_LARGE, dry_run=True)[0] == 403
    assert create(api, "Job", "team-a", FITS)[0] == 201
    verdicts = {each.get("annotations", {}).get("jobs.peakgate.io/verdict") for each in api.audit()}
    assert {"admit", "reject"} <= verdicts
    assert asked.process.poll() is None
