"""The job of a workload, on the cards of its flavor, with a client of the test's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integration.kubernetes.kueue_objects import SMALL, a_workload
from tests.unit.hooks.kubernetes.test_claims import a_claim, a_request

from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.kueue.deciding import Judged
from peakgate.hooks.kubernetes.kueue.judging import Judge
from peakgate.hooks.kubernetes.quantities import MEBIBYTE
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict
from peakgate.v1.training_job_pb2 import TrainingJob

PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"


class Asked:
    """A client that notes what it is asked, and admits cards of at least `least_mib`."""

    def __init__(self, least_mib: int = 0, error: PeakgateError | None = None) -> None:
        self.least_bytes = least_mib * MEBIBYTE
        self.error = error
        self.calls: list[tuple[TrainingJob, dict[str, Any]]] = []

    def predict(self, job: TrainingJob, **told: Any) -> PredictResponse:
        """The verdict by the card alone."""
        self.calls.append((job, told))
        if self.error is not None:
            raise self.error
        fits = job.gpu.memory_bytes >= self.least_bytes
        return PredictResponse(verdict=Verdict.VERDICT_ADMIT if fits else Verdict.VERDICT_REJECT, prediction="predictions/1")


def judged(client: Asked, workload: dict[str, Any], flavor: dict[str, str] | None = None, **facts: Any) -> Judged:
    """What comes of a workload on the flavor h100."""
    judge = Judge(client, facts=lambda: Facts(**facts), flavor=lambda _: flavor or {})  # type: ignore[arg-type]  # as far as it is used
    return judge.judge(workload)


def test_the_same_workload_is_the_same_request() -> None:
    """A controller that starts anew stores no second prediction; another flavor is another request."""
    client = Asked()
    for product in ("Tesla-T4", "Tesla-T4", "NVIDIA-L4"):
        judged(client, a_workload(job=SMALL), {PRODUCT: product})
    first, again, other = (told["request_id"] for _, told in client.calls)
    assert first == again != other
    assert [job.gpu.type for job, _ in client.calls] == ["t4-16gb", "t4-16gb", "l4-24gb"]


def test_of_several_cards_one_prediction_is_stored() -> None:
    """Each is asked about; the one whose answer is shown is kept."""
    client = Asked(least_mib=40_000)
    claim = {"devices": {"requests": [{"name": "g", "firstAvailable": [_option("40Gi"), _option("20Gi")]}]}}
    workload = a_workload(job=SMALL, gpus=0)
    workload["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "c"}]
    told = judged(client, workload, claims={"team-a/c": claim})
    assert told.conclusion is not None
    assert told.conclusion.verdict == Verdict.VERDICT_UNDECIDED
    assert [call.get("validate_only", False) for _, call in client.calls] == [True, True, False]
    assert client.calls[-1][0].gpu.memory_bytes == 40 << 30


@pytest.mark.parametrize(
    ("least_mib", "want"), [(0, Verdict.VERDICT_ADMIT), (40_000, Verdict.VERDICT_UNDECIDED), (90_000, Verdict.VERDICT_REJECT)]
)
def test_pod_sets_on_different_flavors(least_mib: int, want: Verdict.ValueType) -> None:
    """Refused only where the job fits on neither; a launcher without a GPU is no pod set of it."""
    workload = a_workload(job=SMALL)
    (main,) = workload["spec"]["podSets"]
    launcher = json.loads(json.dumps(main))
    del launcher["template"]["spec"]["containers"][0]["resources"]
    workload["spec"]["podSets"] = [launcher | {"name": "launcher"}, main, main | {"name": "worker"}]
    (assignment,) = workload["status"]["admission"]["podSetAssignments"]
    workload["status"]["admission"]["podSetAssignments"] = [assignment, {"name": "worker", "flavors": {"nvidia.com/gpu": "small"}}]
    labels = {"h100": {MEMORY: "81559"}, "small": {MEMORY: "15360"}}
    told = Judge(Asked(least_mib), facts=Facts, flavor=lambda name: labels.get(name, {})).judge(workload)  # type: ignore[arg-type]  # as above
    assert told.conclusion is not None
    assert (told.conclusion.verdict, told.podsets) == (want, ("main", "worker"))


def test_claims_give_the_number_of_gpus() -> None:
    """The readers do not see what a claim gives."""
    client = Asked()
    job = {key: value for key, value in SMALL.items() if key not in ("gpu", "parallelism")}
    workload = a_workload(job=job, gpus=0)
    workload["spec"]["podSets"][0] |= {"count": 2}
    workload["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "c"}]
    judged(client, workload, claims={"c": a_claim(_option("80Gi") | {"count": 4})})
    ((asked, _),) = client.calls
    assert (asked.gpu.count, asked.node.gpus) == (8, 4)


def test_a_wish_to_try_goes_with_the_request() -> None:
    """The annotation of the pods; the namespace stands for the user."""
    client = Asked()
    judged(client, a_workload(job=SMALL, annotations={"peakgate.io/try": "the figures are old"}), {PRODUCT: "Tesla-T4"})
    ((_, told),) = client.calls
    assert (told["asker"].user, told["asker"].try_reason) == ("namespace/team-a", "the figures are old")


def test_an_error_about_the_job_is_not_an_absence() -> None:
    """A service that refuses the job is there."""
    away = judged(Asked(error=PeakgateError("x", code="UNAVAILABLE", reason="R")), a_workload(job=SMALL), {PRODUCT: "Tesla-T4"})
    bad = judged(Asked(error=PeakgateError("bad field", code="INVALID_ARGUMENT", reason="R")), a_workload(job=SMALL), {PRODUCT: "Tesla-T4"})
    assert (away.is_away, bad.is_away, bad.problem) == (True, False, "bad field")


def test_a_config_that_is_not_at_hand_makes_it_partial() -> None:
    """What the launch names and nobody here may open."""
    workload = a_workload(job=SMALL, annotations={})
    container = workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container["command"] = ["torchrun", "--nproc-per-node=1", "train.py", "--model_name_or_path", "gpt2", "--deepspeed", "/config/ds.json"]
    told = judged(Asked(), workload, {PRODUCT: "Tesla-T4"})
    assert told.is_partial


def test_no_file_of_this_machine_is_opened() -> None:
    """A path that a workload names may be a secret here: its content is never read."""
    told = judged(Asked(), a_workload(job={"model": {"hf_config": "/etc/passwd"}}), {PRODUCT: "Tesla-T4"})
    assert "names a file, which is not read here" in told.problem


def _option(size: str) -> dict[str, object]:
    return a_request(f"device.capacity['gpu.nvidia.com'].memory == quantity('{size}')")
