"""States of checks on workloads, as data."""

from __future__ import annotations

import pytest
from tests.integration.kubernetes.kueue_objects import a_check, a_workload

from peakgate.hooks.kubernetes.kueue.checks import CheckMode, Outcome, active_patch, check_of, state_patch, waits_for

NOW = "2026-11-30T12:00:00Z"


@pytest.mark.parametrize(
    ("check", "want"),
    [
        (a_check(mode="enforce"), CheckMode.enforce),
        (a_check(mode="nonsense"), CheckMode.warn),
        (a_check(), CheckMode.warn),
        (a_check(controller="example.com/other"), None),
    ],
)
def test_a_check_has_a_mode(check: dict[str, object], want: CheckMode | None) -> None:
    """Its annotation, else the default; another controller's is none."""
    found = check_of(check, CheckMode.warn)
    assert (found.mode if found is not None else None) == want


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"admission": None}},
        {"status": {"conditions": [{"type": "Finished", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Evicted", "status": "True"}]}},
        {"spec": {"active": False}},
        {"metadata": {"deletionTimestamp": NOW}},
    ],
)
def test_what_does_not_wait_is_left_alone(change: dict[str, dict[str, object]]) -> None:
    """Without quota there is no flavor; what is over, evicted or put aside is Kueue's."""
    workload = a_workload()
    assert waits_for(workload, ["peakgate"]) == ["peakgate"]
    for part, fields in change.items():
        workload[part] = workload[part] | fields
    assert waits_for(workload, ["peakgate"]) == []


def test_a_patch_keeps_the_states_of_others_and_the_version_that_was_read() -> None:
    """The list is replaced as a whole, so a change in between must make a conflict."""
    workload = a_workload(checks=("theirs", "peakgate"))
    workload["metadata"]["resourceVersion"] = "7"
    workload["status"]["admissionChecks"][1] |= {"retryCount": 2, "requeueAfterSeconds": 60}
    outcome = Outcome(state="Ready", reason="fits", message="fits", prediction="predictions/1")
    patch = state_patch(workload, "peakgate", outcome, NOW, ["main"])
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert patch["status"] == {
        "admissionChecks": [
            workload["status"]["admissionChecks"][0],
            {
                "name": "peakgate",
                "state": "Ready",
                "message": "fits",
                "lastTransitionTime": NOW,
                "retryCount": 2,
                "podSetUpdates": [{"name": "main", "annotations": {"peakgate.io/prediction": "predictions/1"}}],
            },
        ]
    }


def test_a_key_of_the_pods_is_never_set_twice() -> None:
    """Kueue refuses to admit a workload whose updates meet: neither over the template's own nor over another check's."""
    outcome = Outcome(state="Ready", reason="fits", message="fits", prediction="predictions/1")
    own = a_workload(annotations={"peakgate.io/prediction": "predictions/0"})
    other = a_workload(checks=("first", "peakgate"))
    other["status"]["admissionChecks"][0]["podSetUpdates"] = [{"name": "main", "annotations": {"peakgate.io/prediction": "predictions/0"}}]
    for workload in (own, other):
        patch = state_patch(workload, "peakgate", outcome, NOW, ["main"])
        status = patch["status"]
        assert isinstance(status, dict)
        assert "podSetUpdates" not in status["admissionChecks"][-1]


def test_a_check_is_made_active_once() -> None:
    """And again for a new generation, with the time of the first."""
    check = a_check()
    patch = active_patch(check, NOW)
    assert patch is not None
    status = patch["status"]
    assert isinstance(status, dict)
    assert active_patch(check | {"status": status}, "later") is None
    check["metadata"]["generation"] = 2
    again = active_patch(check | {"status": status}, "later")
    assert again is not None
    assert again["status"]["conditions"][0]["lastTransitionTime"] == NOW  # type: ignore[index]  # a list of conditions
