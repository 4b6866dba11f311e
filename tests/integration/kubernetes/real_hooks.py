"""Webhook configurations of a real API server that name a webhook of this machine."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Iterator
from typing import Any

from tests.admission_reviews import APIS, T4, stating
from tests.integration.kubernetes.charts import named, rendered
from tests.integration.kubernetes.real_api_server import ApiServer
from tests.webhooks import RunningWebhook

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
SETTLE_SECONDS = 2.0
"""Until an API server has read a configuration that was just made."""

Told = tuple[int, dict[str, Any], list[str]]


def bundle(webhook: RunningWebhook) -> str:
    """The authority of now, as a configuration has it."""
    return base64.b64encode((webhook.folder / "tls" / "ca.crt").read_bytes()).decode()


@contextlib.contextmanager
def configured(api: ApiServer, webhook: RunningWebhook, kind: str = VALIDATING, **changes: Any) -> Iterator[str]:
    """The chart's own configuration, with an address in place of its Service, until the block ends; its path."""
    found = named(rendered("kueue"), kind, "peakgate")
    (hook,) = found["webhooks"]
    path = hook["clientConfig"]["service"]["path"]
    client = {"url": f"https://localhost:{webhook.port}{path}", "caBundle": bundle(webhook)}
    body = {"metadata": {"name": "peakgate"}, "webhooks": [{**hook, "clientConfig": client, **changes}]}
    place = f"{REGISTRATION}/{kind.lower()}s"
    api.must("POST", place, body)
    time.sleep(SETTLE_SECONDS)
    try:
        yield f"{place}/peakgate"
    finally:
        api.must("DELETE", f"{place}/peakgate")
        time.sleep(SETTLE_SECONDS)


def create(api: ApiServer, job: Any, *, namespace: str = "team-a", kind: str = "Job", dry_run: bool = False, **metadata: Any) -> Told:
    """Creates a workload that states a job."""
    group, version, plural = APIS[kind]
    item = stating(kind, job, product=T4)
    kept = {name: value for name, value in item["metadata"].items() if name == "annotations"}  # of a Pod, which states its job there
    item["metadata"] = {"generateName": "x-", **kept, **metadata}
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return api.call("POST", f"{path}/namespaces/{namespace}/{plural}{'?dryRun=All' if dry_run else ''}", item)
