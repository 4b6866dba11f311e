"""What is recommended for a TrainJob, in its own fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from tests.unit.hooks.kubernetes.test_train_job import RUNTIME

from peakgate.client.connect import open_client
from peakgate.hooks.kubernetes.facts import Facts, Node
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.hooks.kubernetes.quantities import MEBIBYTE
from peakgate.hooks.kubernetes.recommender import CHANGES, MANAGER, OPT_IN, is_asked, recommend, recommended
from peakgate.readers.manifests.trainjob import pods_of_train_job
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_yaml
from peakgate.v1.prediction_service_pb2 import SuggestResponse

GPU = "nvidia.com/gpu"
FITS, REJECTS = "VERDICT_ADMIT", "VERDICT_REJECT"


def a_train_job(*, spec: str = "", annotations: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A TrainJob on one node of eight GPUs."""
    metadata = {"name": "j", "namespace": "n", "annotations": {**({"peakgate.io/spec": spec} if spec else {}), **(annotations or {})}}
    trainer = {"numNodes": 1, "resourcesPerNode": {"limits": {GPU: 8}}}
    body = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **more}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": body}


def an_answer(verdict: str, *suggestions: dict[str, Any], bound_mib: int = 50_000, **more: Any) -> SuggestResponse:
    """What Suggest says."""
    prediction = {"verdict": verdict, "peak": {"bound_bytes": bound_mib * MEBIBYTE}, "reason": "activations are too large"}
    return ParseDict({"prediction": prediction, "suggestions": list(suggestions), **more}, SuggestResponse())


def a_change(changes: dict[str, Any], *, fits: bool = True, bound_mib: int = 30_000) -> dict[str, Any]:
    """One suggestion."""
    return {"title": "a change", "changes": changes, "fits": fits, "bound_bytes": bound_mib * MEBIBYTE}


def affinity_of(patch: Any) -> Any:
    """The values of the expression that this manager's patch adds."""
    (mine,) = [each for each in patch["spec"]["runtimePatches"] if each["manager"] == MANAGER]
    (job,) = mine["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    terms = job["template"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]


def test_a_job_that_fits_asks_for_the_memory_it_needs() -> None:
    """Nothing else is changed: any node whose GPUs have as much will do."""
    told = recommended(a_train_job(), an_answer(FITS, smallest_gpu="a100-80gb"))
    assert told.reason == "fits: a GPU needs 52.4 GB, a100-80gb is the smallest that holds it"
    assert set(told.patch["spec"]) == {"runtimePatches"}  # type: ignore[call-overload]  # a merge patch as JSON
    assert affinity_of(told.patch) == ["49999"]
    assert told.changes == ()


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"gpu.count": 16, "parallelism.world_size": 16}, {"numNodes": 2, "resourcesPerNode": {"limits": {GPU: "8"}}}),
        ({"gpu.count": 4}, {"resourcesPerNode": {"limits": {GPU: "4"}}}),
        ({"gpu.count": 12}, {"resourcesPerNode": {"limits": {GPU: "12"}}}),
        ({"gpu.count": 16, "node.gpus": 4}, {"numNodes": 4, "resourcesPerNode": {"limits": {GPU: "4"}}}),
    ],
)
def test_more_gpus_are_nodes_and_resources(changes: dict[str, Any], want: dict[str, Any]) -> None:
    """A change of resources alone is written where the TrainJob says them."""
    told = recommended(a_train_job(), an_answer(REJECTS, a_change({"batch.micro_batch_size": 1}), a_change(changes)))
    assert told.patch["spec"]["trainer"] == want  # type: ignore[index]  # a merge patch as JSON
    assert affinity_of(told.patch) == ["29999"]
    assert told.changes == ()


def test_a_change_of_the_launch_is_told_and_not_written() -> None:
    """No field of a TrainJob can hold it: an annotation for a person, taken away again when it is made."""
    told = recommended(a_train_job(), an_answer(REJECTS, a_change({"checkpointing.mode": "full"})))
    assert told.changes == ("checkpointing.mode: full",)
    assert told.patch["metadata"] == {"annotations": {CHANGES: "checkpointing.mode: full"}}
    later = recommended(a_train_job(annotations={CHANGES: "checkpointing.mode: full"}), an_answer(FITS))
    assert later.patch["metadata"] == {"annotations": {CHANGES: None}}


def test_what_others_wrote_stays_and_a_repeat_changes_nothing() -> None:
    """The list of patches is one merge patch: other managers keep theirs, the own one is replaced."""
    other = {"manager": "kueue.k8s.io/manager", "trainingRuntimeSpec": {}}
    first = recommended(a_train_job(runtimePatches=[other]), an_answer(FITS))
    patches = first.patch["spec"]["runtimePatches"]  # type: ignore[index]  # a merge patch as JSON
    assert [each["manager"] for each in patches] == ["kueue.k8s.io/manager", MANAGER]
    assert recommended(a_train_job(runtimePatches=patches), an_answer(FITS)).patch["spec"] == first.patch["spec"]


def test_nothing_that_fits_recommends_nothing() -> None:
    """The reason is the service's own."""
    told = recommended(a_train_job(), an_answer(REJECTS, a_change({"batch.micro_batch_size": 1}, fits=False)))
    assert (told.patch, told.reason) == ({}, "nothing is recommended: activations are too large")


def test_only_a_job_that_opts_in_is_asked_about() -> None:
    """The annotation of the proposal names the plugin."""
    asked = [is_asked(a_train_job(annotations={OPT_IN: name})) for name in ("peakgate", "another")]
    assert (asked, is_asked(a_train_job())) == ([True, False], False)


def test_a_real_answer_moves_the_job_to_gpus_that_hold_it() -> None:
    """Through the readers and the service: with the patch, the small nodes are no candidates any more."""
    spec = "{model: {preset: gpt2}, batch: {micro_batch_size: 1, sequence_length: 512}, parallelism: {sharding: ddp}}"
    job = a_train_job(spec=spec)
    runtime = {**RUNTIME}
    with open_client() as client:
        told = recommend(job, [runtime], client)
    assert told.patch, told.reason
    patched = job | {"spec": job["spec"] | dict(told.patch["spec"])}  # type: ignore[call-overload]  # a merge patch as JSON
    documents = [read_yaml(json.dumps(each), "object.json")[0] for each in (patched, runtime)]
    (pods,) = pods_of_train_job(documents[0], documents, Reading())
    (least, *_) = affinity_of(told.patch)
    nodes = [
        Node(name=str(mib), labels={"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": str(mib)}, has={GPU: "99"})
        for mib in (int(least), int(least) + 1)
    ]
    cards = cards_of(pods, Facts(nodes=nodes))
    assert [each.memory_bytes // MEBIBYTE for each in cards.candidates] == [int(least) + 1]


def test_a_job_that_cannot_be_read_recommends_nothing() -> None:
    """No guess."""
    with open_client() as client:
        told = recommend(a_train_job(), [], client)
    assert (told.patch, told.reason[:22]) == ({}, "nothing is recommended")
