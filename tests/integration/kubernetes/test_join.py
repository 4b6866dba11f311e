"""A plain Job, nothing changed in it: what an agent sees on its pods is joined to the prediction of its review by the Job's uid."""

from __future__ import annotations

import base64
import json
import uuid

from tests.admission_reviews import FITS, a_review, stating
from tests.bench.programs import Program
from tests.integration.cli import peakgate
from tests.integration.service.telling import a_batch, a_peak, an_end
from tests.webhooks import RunningWebhook

from peakgate.client.connect import connect


def test_the_uid_of_a_job_leads_its_peaks_to_its_prediction(webhook: RunningWebhook, service: Program) -> None:
    """The review stores under metadata.uid, which Kubernetes writes on the Job's pods as batch.kubernetes.io/controller-uid; with that in
    PEAKGATE_PREDICTION the agent's rows are observations of the prediction, and a person finds it by the uid as well."""
    uid, pod = str(uuid.uuid4()), str(uuid.uuid4())
    response = webhook.ask(json.dumps(a_review(stating("Job", FITS, metadata={"uid": uid}))).encode())
    name = response["auditAnnotations"]["prediction"]
    with connect(service.target, predict_timeout_seconds=10.0) as client:
        predicted = client.get_prediction(name).prediction
        assert client.get_prediction(uid).prediction.prediction == name
        peak = a_peak(uid, predicted.peak.device_bytes, job=pod, ended=True)
        assert not client.report_peaks(a_batch(peak)).refused
        client.report_job_event(an_end(uid, job=pod))
        (observation,) = client.get_prediction(name).observations
        assert (observation.job, observation.observed_bytes) == (pod, predicted.peak.device_bytes)
    (explained,) = peakgate("explain", uid, "--server", service.target, "--output", "jsonl").objects
    assert explained["prediction"] == name


def test_pods_that_name_the_uid_are_joined_under_the_mutating_webhook_too(webhook: RunningWebhook, service: Program) -> None:
    """It names another prediction, before the object has a uid: the agent's word on the pods holds."""
    uid = str(uuid.uuid4())
    job = stating("Job", FITS, metadata={"uid": uid})
    mutated = webhook.ask(json.dumps(a_review(job)).encode(), path="/mutate?timeout=3s")
    named = json.loads(base64.b64decode(mutated["patch"]))[0]["value"]["peakgate.io/prediction"]
    job["metadata"]["annotations"] = {"peakgate.io/prediction": named}
    field = {"fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']"}
    job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PEAKGATE_PREDICTION", "valueFrom": {"fieldRef": field}}]
    response = webhook.ask(json.dumps(a_review(job)).encode())
    with connect(service.target, predict_timeout_seconds=10.0) as client:
        found = client.get_prediction(uid).prediction.prediction
    assert found == response["auditAnnotations"]["prediction"] != named
