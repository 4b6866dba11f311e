"""Who is asked, what is kept, and what happens when the webhook is slow, away or changes its certificate: a real kube-apiserver asks the
real webhook by the chart's own configuration. Collected when PEAKGATE_KUBE_APISERVER names the program."""

from __future__ import annotations

import json
import signal
import ssl
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.admission_reviews import FITS, LARGE, RULES, SPEC, T4, TOO_LARGE, a_container, a_review, a_template, a_workload
from tests.bench.programs import Program
from tests.certificate_swaps import shown, swap
from tests.integration.kubernetes.real_api_server import ApiServer, api_server, wait_until
from tests.integration.kubernetes.real_hooks import MUTATING, SETTLE_SECONDS, bundle, configured, create
from tests.webhooks import RunningWebhook, running_webhook

from peakgate.client.connect import connect
from peakgate.hooks.kubernetes.issuing import make_authority, make_leaf

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(600)]

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "0193b0c2-f7e1-42b3-84d5-e6f708192a3b", "controller": True}
JOBS = "/apis/batch/v1/namespaces/enforced-a/jobs"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With the namespaces of the rules, and one that a configuration can leave out."""
    with api_server(tmp_path_factory.mktemp("api")) as found:
        for name in ("team-a", "enforced-a", "peakgate"):
            found.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield found


@pytest.fixture
def webhook(service: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWebhook]:
    """One of its own for each test: they stop it and change its certificate."""
    with running_webhook(tmp_path_factory.mktemp("asked"), RULES, "--server", service.target, "--no-beside") as found:
        yield found


def names(api: ApiServer) -> set[str]:
    """The jobs that exist."""
    return {each["metadata"]["name"] for each in api.must("GET", JOBS)["items"]}


def audited(api: ApiServer) -> dict[str, str]:
    """What the audit log keeps of the webhook's for the job that was created last, without the webhook's name."""
    event = [each for each in api.audit() if (each["verb"], each.get("objectRef", {}).get("resource")) == ("create", "jobs")][-1]
    prefix = "jobs.peakgate.io/"
    return {name.removeprefix(prefix): text for name, text in event["annotations"].items() if name.startswith(prefix)}


def test_whom_the_selectors_leave_out_is_not_asked_about(api: ApiServer, webhook: RunningWebhook) -> None:
    """peakgate's own namespace and what a controller made; and what a label of somebody's own configuration leaves out."""
    label = {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}
    with configured(api, webhook, objectSelector=label):
        assert create(api, TOO_LARGE, namespace="enforced-a")[0] == 403
        assert create(api, TOO_LARGE, namespace="enforced-a", kind="Pod")[0] == 403
        for told in (
            create(api, TOO_LARGE, namespace="peakgate"),
            create(api, TOO_LARGE, namespace="enforced-a", labels={"skip": "yes"}),
            create(api, TOO_LARGE, namespace="enforced-a", kind="Pod", ownerReferences=[OWNER]),
        ):
            assert (told[0], told[2]) == (201, [])
        lines = webhook.probe("/metrics")[1].splitlines()
        asked = [line for line in lines if line.startswith("peakgate_webhook_reviews_total") and not line.endswith(" 0.0")]
        assert sum(float(line.rpartition(" ")[2]) for line in asked) == 2


def test_a_dry_run_leaves_nothing(api: ApiServer, webhook: RunningWebhook, service: Program) -> None:
    """No object and no prediction, denied or not; sideEffects NoneOnDryRun lets the API server ask at all."""
    with configured(api, webhook), connect(service.target, predict_timeout_seconds=10.0) as client:
        before, predictions = names(api), len(client.list_predictions(limit=1000))
        assert create(api, TOO_LARGE, namespace="enforced-a", dry_run=True)[0] == 403
        status, _, warnings = create(api, TOO_LARGE, dry_run=True)
        assert status == 201
        assert "too few" in warnings[0]
        assert names(api) == before
        assert len(client.list_predictions(limit=1000)) == predictions


def test_a_generated_name_has_a_uid_to_be_known_by(api: ApiServer, webhook: RunningWebhook) -> None:
    """The prediction in the audit log is the one under the uid that the object then has."""
    with configured(api, webhook):
        status, created, _ = create(api, FITS, namespace="enforced-a")
        assert status == 201
        kept = audited(api)
        assert (kept["outcome"], kept["mode"], kept["verdict"]) == ("allowed", "enforce", "admit")
        again = webhook.ask(json.dumps(a_review(created, namespace="enforced-a", user="admin")).encode())
        assert again["auditAnnotations"]["prediction"] == kept["prediction"]


def test_a_spec_that_cannot_be_read_is_let_in_with_a_word(api: ApiServer, webhook: RunningWebhook) -> None:
    """Even where jobs that do not fit are denied."""
    with configured(api, webhook):
        template = a_template(product=T4, annotations={SPEC: "{no: [yaml"}, container=a_container(command=LARGE.split()))
        status, _, warnings = api.call("POST", JOBS, a_workload(template=template, metadata={"name": "no-yaml", "namespace": "enforced-a"}))
        assert status == 201
        assert len(warnings) == 1
        assert SPEC in warnings[0]


def test_what_the_mutating_webhook_adds_is_taken(api: ApiServer, webhook: RunningWebhook) -> None:
    """The affinity and the prediction's name are in the object, the validating one believes them, and nothing else has changed."""
    with configured(api, webhook, MUTATING), configured(api, webhook):
        status, created, _ = create(api, FITS, namespace="enforced-a")
        assert status == 201
        pod = created["spec"]["template"]
        (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert [each["key"] for each in term["matchExpressions"]] == ["nvidia.com/gpu.memory"]
        prediction = created["metadata"]["annotations"]["peakgate.io/prediction"]
        assert pod["metadata"]["annotations"]["peakgate.io/prediction"] == prediction
        assert audited(api)["prediction"] == prediction
        assert create(api, TOO_LARGE, namespace="enforced-a")[0] == 403


def fail_opens(api: ApiServer) -> float:
    """How many objects the API server says that it let in unasked, in the metric and label that the alert looks at."""
    request = urllib.request.Request(f"{api.address}/metrics", headers={"Authorization": "Bearer token-of-admin"})
    context = ssl.create_default_context(cafile=str(api.folder / "ca.crt"))
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    ours = [line for line in lines if line.startswith("apiserver_admission_webhook_fail_open_count{") and "peakgate" in line]
    return sum(float(line.rpartition(" ")[2]) for line in ours)


@pytest.mark.parametrize("stops", [signal.SIGKILL, signal.SIGSTOP], ids=["away", "stands still"])
def test_nobody_waits_for_a_webhook_that_is_gone(api: ApiServer, webhook: RunningWebhook, stops: signal.Signals) -> None:
    """It is let in, at once or after the three seconds of the chart; the API server counts it where the alert looks. With the policy Fail,
    which is somebody's choice, it is refused."""
    before = fail_opens(api)
    with configured(api, webhook):
        assert create(api, TOO_LARGE, namespace="enforced-a")[0] == 403
        webhook.process.send_signal(stops)
        began = time.monotonic()
        assert (told := create(api, TOO_LARGE, namespace="enforced-a"))[0] == 201, told
        assert time.monotonic() - began < 4.0
        assert fail_opens(api) == before + 1
    with configured(api, webhook, failurePolicy="Fail"):
        assert create(api, TOO_LARGE, namespace="enforced-a")[0] == 500
    webhook.process.send_signal(signal.SIGCONT)


def test_a_new_certificate_breaks_no_review(api: ApiServer, webhook: RunningWebhook) -> None:
    """A new leaf under the old connection, and then a new authority, which the API server is told: with the policy Fail each review counts.

    The API server keeps its connection, so both are also tried on new ones, which it makes when the webhook's configuration changes."""
    with configured(api, webhook, failurePolicy="Fail", timeoutSeconds=10) as path:
        assert create(api, FITS)[0] == 201
        first = swap(webhook)
        assert create(api, FITS)[0] == 201
        renew(webhook)
        wait_until(lambda: shown_by(webhook) not in (None, first), "the new authority's leaf is shown")
        assert create(api, FITS)[0] == 201  # over the connection of before: its certificate was good when it was made
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle(webhook)}]
        assert api.call("PATCH", path, patch, content_type="application/json-patch+json")[0] == 200
        time.sleep(SETTLE_SECONDS)
        for _ in range(3):
            status, _, warnings = create(api, TOO_LARGE)
            assert status == 201
            assert "too few" in warnings[0]


def renew(webhook: RunningWebhook) -> None:
    """All four files anew, by another authority."""
    now = datetime.now(UTC)
    authority = make_authority(now)
    leaf = make_leaf(authority, ["localhost"], now)
    texts: dict[str, Any] = {"ca.crt": authority.certificate, "ca.key": authority.key, "tls.key": leaf.key, "tls.crt": leaf.certificate}
    for name, text in texts.items():
        (webhook.folder / "tls" / f"{name}.new").write_bytes(text)
        (webhook.folder / "tls" / f"{name}.new").rename(webhook.folder / "tls" / name)


def shown_by(webhook: RunningWebhook) -> int | None:
    """The serial number that a client of the new authority sees; None while it is refused."""
    try:
        return shown(webhook)
    except OSError:
        return None
