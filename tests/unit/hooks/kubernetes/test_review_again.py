"""Reviews of an object that was there before, and what the mutating webhook does with each mode."""

from __future__ import annotations

import base64
import copy
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.admission_reviews import FITS, H100, LARGE, MODES, SPEC, T4, TOO_LARGE, TRAIN, a_review, a_template, launching, stating

from peakgate.client.connect import connect
from peakgate.hooks.kubernetes import review as review_module
from peakgate.hooks.kubernetes.admission import parse_review
from peakgate.hooks.kubernetes.review import Reviewer
from peakgate.hooks.kubernetes.workloads import is_new

PREDICTION = "peakgate.io/prediction"


def changed(cron_job: dict[str, Any], job: dict[str, Any] | Any) -> dict[str, Any]:
    """An update of a CronJob, whose uid stays."""
    new = copy.deepcopy(cron_job)
    new["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"][SPEC] = json.dumps(job)
    return a_review(new, kind="CronJob", operation="UPDATE", old=cron_job)


async def named(reviewer: Reviewer, review: dict[str, Any]) -> str:
    """The prediction that the audit log keeps."""
    response = json.loads(await reviewer.validate(json.dumps(review).encode()))["response"]
    found: str = response["auditAnnotations"]["prediction"]
    return found


async def test_each_state_of_a_cron_job_has_one_prediction(reviewer: Reviewer, target: str) -> None:
    """However often it is reviewed: the first under its uid, those of updates beside it."""
    small = stating("CronJob", FITS, product=T4)
    grown = changed(small, TOO_LARGE)
    first = await named(reviewer, a_review(small, kind="CronJob"))
    second = [await named(reviewer, grown) for _ in range(2)]
    third = await named(reviewer, changed(grown["request"]["object"], {**FITS, "precision": {"recipe": "bf16"}}))
    assert second[0] == second[1]
    assert len({first, second[0], third}) == 3
    with connect(target, predict_timeout_seconds=10.0) as client:
        assert client.get_prediction(second[0]).prediction.verdict != client.get_prediction(first).prediction.verdict


async def test_what_is_known_of_a_uid_is_no_obstacle_to_another_job(reviewer: Reviewer) -> None:
    """A used request id with another job under it is judged under a new one."""
    review = a_review(stating("Job", FITS, product=T4))
    other = copy.deepcopy(review)
    other["request"]["object"]["spec"]["template"]["metadata"]["annotations"][SPEC] = json.dumps(TOO_LARGE)
    first, second = await named(reviewer, review), await named(reviewer, other)
    assert first != second


def test_an_update_that_changes_no_job_is_passed_at_once() -> None:
    """By comparing what is there, however large; the API server sends every change of a CronJob."""
    template = a_template(annotations={f"note-{number}": "x" * 1000 for number in range(200)})
    cron_job = stating("CronJob", FITS)
    cron_job["spec"]["jobTemplate"]["spec"]["template"] = template
    review = a_review({**cron_job, "metadata": {"name": "x"}}, kind="CronJob", operation="UPDATE", old=copy.deepcopy(cron_job))
    admission = parse_review(json.dumps(review).encode())
    began = time.perf_counter()
    for _ in range(100):
        assert not is_new(admission)
    assert (time.perf_counter() - began) / 100 < 0.001


@pytest.mark.parametrize(
    ("mode", "want"), [("off", ()), ("audit", ()), ("warn", ("affinity", "annotations")), ("enforce", ("affinity", "annotations"))]
)
@pytest.mark.parametrize("is_dry_run", [False, True])
async def test_only_who_is_told_gets_something_added(reviewer: Reviewer, mode: str, want: tuple[str, ...], *, is_dry_run: bool) -> None:
    """In the mode audit an object stays what it was. A dry run has no prediction to be named, and nothing is counted as a review."""
    review = a_review(stating("Job", FITS, product=H100), namespace=MODES[mode], dry_run=is_dry_run)
    response = json.loads(await reviewer.mutate(json.dumps(review).encode()))["response"]
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    found = {word for word in ("affinity", "annotations") if any(word in each["path"] for each in patch)}
    assert found == set(want) - ({"annotations"} if is_dry_run else set())
    assert "warnings" not in response
    assert "auditAnnotations" not in response
    counted = {
        (sample.name, sample.labels.get("changed"))
        for metric in reviewer.metrics.registry.collect()
        for sample in metric.samples
        if sample.name.endswith(("reviews_total", "patches_total")) and sample.value
    }
    assert counted == {("peakgate_webhook_patches_total", "affinity" if want else "nothing")}


async def test_a_second_call_of_the_mutating_webhook_adds_nothing(reviewer: Reviewer) -> None:
    """Another plugin changed the object, so that the API server asks again (reinvocationPolicy IfNeeded): the prediction stays."""
    review = a_review(stating("Job", FITS, product=H100))
    patch = json.loads(base64.b64decode(json.loads(await reviewer.mutate(json.dumps(review).encode()))["response"]["patch"]))
    item = review["request"]["object"]
    pod = item["spec"]["template"]
    affinity = next(each for each in patch if each["path"].endswith("/affinity"))
    pod["spec"]["affinity"] = affinity["value"]
    name = next(each["value"] for each in patch if each["path"] == "/metadata/annotations")[PREDICTION]
    item["metadata"]["annotations"] = {PREDICTION: name}
    pod["metadata"]["annotations"][PREDICTION] = name
    again = json.loads(await reviewer.mutate(json.dumps(review).encode()))["response"]
    assert "patch" not in again


async def test_a_job_that_is_warned_hears_that_its_word_does_not_count(reviewer: Reviewer) -> None:
    """In a line of its own, and in the audit log."""
    huge = {**TOO_LARGE, "gpu": {"memory_bytes": 10**15}}
    response = json.loads(await reviewer.validate(json.dumps(a_review(stating("Job", huge, product=T4))).encode()))["response"]
    assert response["allowed"] is True
    want = "it states gpu.memory_bytes 1000000000000000, and gets Tesla-T4: judged on that"
    assert response["warnings"][-1] == f"peakgate: {want}"
    assert response["auditAnnotations"]["overruled"] == want


@pytest.mark.parametrize("is_changed", [True, False])
async def test_an_update_gets_the_name_of_its_own_prediction(reviewer: Reviewer, *, is_changed: bool) -> None:
    """In the place of that of the job before; one that changes no job keeps it."""
    cron_job = stating("CronJob", FITS, product=H100, metadata={"annotations": {PREDICTION: "predictions/before"}})
    cron_job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"][PREDICTION] = "predictions/before"
    review = changed(cron_job, {**FITS, "precision": {"recipe": "bf16"}} if is_changed else FITS)
    response = json.loads(await reviewer.mutate(json.dumps(review).encode()))["response"]
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    want = ["/metadata/annotations", "/spec/jobTemplate/spec/template/metadata/annotations"] if is_changed else []
    assert [each["path"] for each in patch] == [f"{path}/peakgate.io~1prediction" for path in want]
    assert len({each["value"] for each in patch}) == is_changed
    assert "predictions/before" not in [each["value"] for each in patch]


@pytest.mark.parametrize(("breaks", "want"), [(lambda *_: time.sleep(0.5), "nothing"), (lambda *_: 1 // 0, "fault")])
async def test_what_the_mutating_webhook_cannot_do_it_leaves(
    reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch, breaks: Callable[..., object], want: str
) -> None:
    """Without a word, for the validating one has it; counted."""
    monkeypatch.setattr(review_module, "read_object", breaks)
    reviewer.deadline_seconds = 0.1
    reviewer.tell = lambda *_: None
    body = json.dumps(a_review(stating("Job", FITS, product=H100))).encode()
    assert set(json.loads(await reviewer.mutate(body))["response"]) == {"uid", "allowed"}
    assert reviewer.metrics.registry.get_sample_value("peakgate_webhook_patches_total", {"changed": want}) == 1


async def audited(reviewer: Reviewer, *scripts: str) -> dict[str, str]:
    """What the audit log keeps of a job that runs launches one after another."""
    review = a_review(launching("bash", "-c", "; ".join(scripts), product=H100), namespace=MODES["enforce"])
    found: dict[str, str] = json.loads(await reviewer.validate(json.dumps(review).encode()))["response"]["auditAnnotations"]
    return found


async def test_of_launches_that_all_fit_the_one_that_needs_the_most_is_kept(reviewer: Reviewer) -> None:
    """In whichever order they stand, and without a word; what is stored, and what a node is picked by, is its need."""
    larger = TRAIN.replace("batch_size 1", "batch_size 8")
    alone, first, last = [await audited(reviewer, *scripts) for scripts in ([larger], [larger, TRAIN], [TRAIN, larger])]
    assert alone["bound-bytes"] == first["bound-bytes"] == last["bound-bytes"] != (await audited(reviewer, TRAIN))["bound-bytes"]
    assert "launch" not in {**first, **last}


async def test_of_launches_that_do_not_fit_the_one_that_needs_the_most_is_named(reviewer: Reviewer) -> None:
    """Its place among those that differ is in the audit log as well."""
    larger = LARGE.replace("batch_size 4", "batch_size 8")
    found = await audited(reviewer, TRAIN, LARGE, LARGE, larger)
    assert (found["outcome"], found["launch"]) == ("denied", "launch 3 of 3")
    assert found["bound-bytes"] == (await audited(reviewer, larger))["bound-bytes"]
