"""A real kube-apiserver asks the real webhook. Collected when PEAKGATE_KUBE_APISERVER names the program; Debian has its etcd."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from tests.admission_reviews import APIS, FITS, KINDS, RULES, SPEC, TOO_LARGE
from tests.bench.programs import Program
from tests.integration.kubernetes.real_api_server import ApiServer, a_definition, api_server
from tests.integration.kubernetes.real_hooks import SETTLE_SECONDS, configured, create
from tests.webhooks import RunningWebhook, running_webhook

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]


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
    running = running_webhook(tmp_path_factory.mktemp("asked"), RULES, "--server", service.target, "--no-beside")
    with running as webhook, configured(api, webhook):
        yield webhook


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_allowed_warned_and_denied(api: ApiServer, asked: RunningWebhook, kind: str) -> None:
    """As kubectl would show it."""
    status, created, warnings = create(api, FITS, kind=kind)
    assert (status, warnings) == (201, [])
    assert created["metadata"]["uid"]
    status, _, warnings = create(api, TOO_LARGE, kind=kind)
    assert status == 201
    assert any("too few" in each for each in warnings)
    status, refused, _ = create(api, TOO_LARGE, kind=kind, namespace="enforced-a")
    if kind == "TrainJob":  # its runtime is not known to this webhook
        assert status == 201
    else:
        assert status == 403
        assert "too few" in refused["message"]
    assert "fault" not in asked.log


def test_a_cron_job_is_judged_again_when_its_job_changes(api: ApiServer, asked: RunningWebhook) -> None:
    """And only then: another schedule of a job that does not fit passes."""
    status, created, _ = create(api, FITS, kind="CronJob", namespace="enforced-a")
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
