"""The running webhook over TLS: reviews of every kind, what it stores, certificates that change, a service that is away."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.admission_further import further_cases
from tests.admission_reviews import (
    FITS,
    RECORDED,
    RULES,
    SPEC,
    T4,
    TOO_LARGE,
    a_container,
    a_review,
    a_template,
    a_workload,
    cases,
    stating,
    with_new_uids,
)
from tests.bench.programs import Program, peakgate_server
from tests.certificate_swaps import swap
from tests.integration.kubernetes.real_api_server import wait_until
from tests.unit.hooks.kubernetes.checks import check
from tests.webhooks import BESIDE_READY, JSON, PATH, RunningWebhook, running_webhook

from peakgate.client.connect import connect

SWAPS = 12
"""Of a hundred in `make bench`."""

PREDICTION = "peakgate.io/prediction"
LONGEST_SECONDS = 2.0
IN_TIME = 5
"""Tries until both webhooks were answered by the service within its 0.8 s: on a machine with other work one may be late."""

BESIDE = re.compile(rf"{BESIDE_READY} (\d+)")


@pytest.mark.parametrize("body", RECORDED.values(), ids=RECORDED)
def test_recorded_reviews_are_answered(webhook: RunningWebhook, body: bytes) -> None:
    """What a real API server sent comes back with its uid."""
    response = webhook.ask(body)
    assert response["uid"] == json.loads(body)["request"]["uid"]
    assert response["allowed"] is True


def test_the_table_comes_out_over_the_wire(webhook: RunningWebhook) -> None:
    """Every body of the table, over one connection that stays open as the API server's does."""
    with contextlib.closing(webhook.connection()) as connection:
        for case in map(with_new_uids, [*cases(), *further_cases()]):
            connection.request("POST", PATH, case.body, JSON)
            check(case, json.loads(connection.getresponse().read()), may_lack_change=True)
    text = webhook.probe("/metrics")[1]
    assert 'peakgate_webhook_reviews_total{kind="VolcanoJob",outcome="denied",verdict="reject"}' in text
    assert "fault in the webhook" not in webhook.log


def test_a_prediction_is_stored_under_the_uid_of_the_object(webhook: RunningWebhook, service: Program) -> None:
    """Asked twice it is one prediction; a dry run stores none; the user is the one who sent the object."""
    with connect(service.target, predict_timeout_seconds=10.0) as client:
        before = len(client.list_predictions(limit=1000))
        review = a_review(stating("PyTorchJob", TOO_LARGE, product=T4), kind="PyTorchJob", user="bob")
        webhook.ask(json.dumps({**review, "request": {**review["request"], "dryRun": True}}).encode())
        assert len(client.list_predictions(limit=1000)) == before
        names = {webhook.ask(json.dumps(review).encode())["auditAnnotations"]["prediction"] for _ in range(2)}
        assert len(names) == 1
        stored = client.list_predictions(limit=1000)
        assert len(stored) == before + 1
        assert (stored[0].prediction, stored[0].user) == (*names, "bob")


@pytest.mark.parametrize("has_service", [True, False])
def test_the_size_of_a_share_is_known_from_the_start(tmp_path: Path, service: Program, *, has_service: bool) -> None:
    """The catalogue is read as soon as somebody answers: the service, or the one beside."""
    options = ("--server", service.target, "--no-beside") if has_service else ("--server", "localhost:1")
    template = a_template(
        product="A100-SXM4-40GB", annotations={SPEC: json.dumps(FITS), "gpu-fraction": "0.01"}, container=a_container(gpus=0)
    )
    body = json.dumps(a_review(a_workload("Job", template=template), namespace="enforced-a")).encode()
    with running_webhook(tmp_path, RULES, *options, waits_for="" if has_service else BESIDE_READY) as webhook:
        wait_until(lambda: not webhook.ask(body)["allowed"], "a share of a card is judged", seconds=LONGEST_SECONDS)


def test_a_try_is_granted_to_whom_the_api_server_names(webhook: RunningWebhook) -> None:
    """With a reason in an annotation a job that does not fit runs; it is told, audited and counted against its user."""
    annotations = {"peakgate.io/try": "the paper ran it on this card"}
    found = []
    for _ in range(4):
        large = stating("Job", TOO_LARGE, product=T4, metadata={"annotations": annotations})
        found.append(webhook.ask(json.dumps(a_review(large, namespace="enforced-a", user="carol")).encode()))
    assert [each["allowed"] for each in found] == [True, True, True, False]
    assert found[0]["auditAnnotations"]["try"] == annotations["peakgate.io/try"]
    assert found[0]["auditAnnotations"]["outcome"] == "tried"
    assert "admitted to be tried" in found[0]["warnings"][-1]
    assert "refused" in found[3]["status"]["message"]


def test_rules_are_read_again(webhook: RunningWebhook) -> None:
    """A namespace that is enforced from now on; a broken file changes nothing and is told."""
    body = json.dumps(a_review(stating("Job", TOO_LARGE, product=T4), namespace="team-z")).encode()
    assert webhook.ask(body)["allowed"] is True
    webhook.rules(RULES.replace("enforced-*", "team-z"))
    assert webhook.ask(body)["allowed"] is False
    webhook.rules("mode: [")
    assert webhook.ask(body)["allowed"] is False
    assert "peakgate_webhook_config_stale 1.0" in webhook.probe("/metrics")[1]
    webhook.rules(RULES)
    assert webhook.ask(body)["allowed"] is True


def test_certificates_change_under_load(webhook: RunningWebhook) -> None:
    """While reviews come on new connections certificates are swapped, and none of the reviews fails."""
    done, failed, context = threading.Event(), list[str](), webhook.trusting()
    asked = [0]

    def ask() -> None:
        body = json.dumps(a_review(operation="UPDATE")).encode()
        while not done.is_set():
            try:
                webhook.ask(body, context=context)
                asked[0] += 1
            except (OSError, RuntimeError) as error:
                failed.append(repr(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        serials = {swap(webhook) for _ in range(SWAPS)}
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert asked[0] > SWAPS
    assert len(serials) == SWAPS


def test_a_service_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    """The one beside judges, and says that nothing was recorded; without it a job is allowed within two seconds, with one warning."""
    with running_webhook(tmp_path, RULES, "--server", "localhost:1", waits_for=BESIDE_READY) as webhook:
        body = json.dumps(a_review(stating("Job", TOO_LARGE, product=T4), namespace="enforced-a")).encode()
        denied = webhook.ask(body)
        assert (denied["allowed"], denied["auditAnnotations"]["by"]) == (False, "beside")
        assert webhook.probe("/readyz") == (200, "ok\n")
        assert "peakgate_webhook_service_up 0.0" in webhook.probe("/metrics")[1]
        os.kill(int(BESIDE.findall(webhook.log)[-1]), signal.SIGKILL)
        wait_until(lambda: "peakgate_webhook_beside_ready 0.0" in webhook.probe("/metrics")[1], "its end is seen")
        began = time.monotonic()
        allowed = webhook.ask(body)
        assert time.monotonic() - began < LONGEST_SECONDS
        assert allowed["allowed"] is True
        assert len(allowed["warnings"]) == 1
        assert "not checked" in allowed["warnings"][0]
        assert 'outcome="unchecked",verdict="none"} 1.0' in webhook.probe("/metrics")[1]
        assert webhook.probe("/readyz") == (200, "ok\n")


def test_a_service_that_is_killed_is_missed_without_a_review(tmp_path: Path) -> None:
    """Within two seconds; the webhook stays ready, for an unready one would be left out in silence."""
    with peakgate_server(tmp_path) as own, running_webhook(tmp_path, RULES, "--server", own.target, "--no-beside") as webhook:
        assert webhook.probe("/readyz") == (200, "ok\n")
        assert "peakgate_webhook_service_up 1.0" in webhook.probe("/metrics")[1]
        own.process.kill()
        own.process.wait()
        wait_until(lambda: "peakgate_webhook_service_up 0.0" in webhook.probe("/metrics")[1], "it is missed", LONGEST_SECONDS)
        assert webhook.probe("/readyz") == (200, "ok\n")


def test_what_mutating_adds_is_what_validating_finds(webhook: RunningWebhook, service: Program) -> None:
    """The mutating webhook names a prediction; the validating one takes that instead of a second. A name of another job is not believed."""
    for number in range(IN_TIME):
        review = a_review(stating("Job", TOO_LARGE, product=T4), user=f"dora-{number}")
        mutated = webhook.ask(json.dumps(review).encode(), path="/mutate?timeout=3s")
        patch = json.loads(base64.b64decode(mutated.get("patch", "W10=")))
        name = next((each["value"][PREDICTION] for each in patch if each["path"].startswith("/metadata/annotations")), "")
        item = review["request"]["object"]
        item["metadata"]["annotations"] = {PREDICTION: name}
        validated = webhook.ask(json.dumps(review).encode())
        if name and validated["auditAnnotations"].get("prediction") == name:
            break
    assert validated["auditAnnotations"]["prediction"] == name
    assert validated["warnings"][-1].endswith(name.removeprefix("predictions/"))
    with connect(service.target, predict_timeout_seconds=10.0) as client:
        stored = client.list_predictions(limit=1000)
    assert [each.prediction for each in stored if each.user == f"dora-{number}"] == [name]
    item["spec"]["template"]["metadata"]["annotations"][SPEC] = json.dumps(FITS)
    other = webhook.ask(json.dumps(review).encode())
    assert other["auditAnnotations"]["verdict"] == "admit"
    assert other["auditAnnotations"]["prediction"] != name
