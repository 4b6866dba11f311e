"""What a review does when the cluster is known, when something takes too long, and when something breaks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from tests.admission_reviews import SPEC, T4, TOO_LARGE, TRAIN, a_container, a_review, a_template, a_workload, stating

from peakgate.hooks.kubernetes import review as review_module
from peakgate.hooks.kubernetes.cluster import NoCluster
from peakgate.hooks.kubernetes.facts import Facts, Node
from peakgate.hooks.kubernetes.objects import Object
from peakgate.hooks.kubernetes.review import Reviewer

V100 = "Tesla-V100-SXM2-16GB"
NAMELESS = json.dumps(a_review(stating("Job", TOO_LARGE, product=""), namespace="enforced-a")).encode()
LARGE = json.dumps(a_review(stating("Job", TOO_LARGE, product=T4))).encode()


def nodes(*products: str) -> tuple[Node, ...]:
    """One node a product."""
    return tuple(Node(name=product, labels={"nvidia.com/gpu.product": product}, has={"nvidia.com/gpu": "8"}) for product in products)


@pytest.mark.parametrize(
    ("facts", "want_allowed"),
    [
        (Facts(), True),
        (Facts(nodes=nodes(T4)), False),
        (Facts(nodes=nodes(T4, V100)), False),
        (Facts(nodes=nodes(T4), nodes_may_join=True), True),
        (Facts(nodes=()), True),
    ],
    ids=["nodes are not looked at", "one kind", "two kinds, none fits", "others may join", "no node"],
)
async def test_a_job_without_a_selector_is_denied_when_no_node_holds_it(reviewer: Reviewer, facts: Facts, *, want_allowed: bool) -> None:
    """And only when none ever will."""
    reviewer.facts = lambda: facts
    response = json.loads(await reviewer.validate(NAMELESS))["response"]
    assert response["allowed"] is want_allowed
    assert want_allowed is ("warnings" in response)


async def test_an_object_that_takes_too_long_to_read_is_allowed(reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the deadline, with the warning that it was not checked."""
    monkeypatch.setattr(review_module, "read_object", lambda *_: time.sleep(1.0))
    reviewer.deadline_seconds = 0.2
    with ThreadPoolExecutor(1) as reviewer.executor:
        began = time.monotonic()
        response = json.loads(await reviewer.validate(LARGE))["response"]
        assert time.monotonic() - began < 0.8
    assert (response["allowed"], len(response["warnings"])) == (True, 1)
    assert "not checked" in response["warnings"][0]
    assert response["auditAnnotations"]["outcome"] == "unchecked"


async def test_a_fault_of_our_own_admits_and_is_told(reviewer: Reviewer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is."""
    said: list[str] = []
    monkeypatch.setattr(review_module, "read_object", lambda *_: 1 // 0)
    reviewer.tell = lambda level, text: said.append(f"{level}: {text}")
    response = json.loads(await reviewer.validate(LARGE))["response"]
    assert response["allowed"] is True
    assert "not checked" in response["warnings"][0]
    assert said == ["error: fault in the webhook, admitted unchecked: ZeroDivisionError: integer division or modulo by zero"]


@dataclass(frozen=True, slots=True)
class Labelled(NoCluster):
    """A cluster whose namespaces wish for something."""

    wish: str = ""

    async def modes_of(self, namespace: str) -> Sequence[str]:
        """The wish."""
        return [self.wish]


@pytest.mark.parametrize(("wish", "want_allowed"), [("enforce", False), ("off", True), ("", True)])
async def test_the_label_of_a_namespace_makes_it_stricter(reviewer: Reviewer, wish: str, *, want_allowed: bool) -> None:
    """As that of a workload does."""
    reviewer.cluster = Labelled(wish)
    response = json.loads(await reviewer.validate(LARGE))["response"]
    assert response["allowed"] is want_allowed
    assert want_allowed is ("warnings" in response)


@dataclass(frozen=True, slots=True)
class WithRuntime(NoCluster):
    """A cluster whose runtime asks for these resources."""

    resources: Mapping[str, str]

    async def named_by(self, workload: Object) -> Sequence[Object]:
        """The runtime."""
        pod = {"spec": {"containers": [{"name": "node", "resources": {"limits": self.resources}}]}}
        jobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
        runtime = {"kind": "ClusterTrainingRuntime", "apiVersion": "trainer.kubeflow.org/v1alpha1", "metadata": {"name": "torch"}}
        return [{**runtime, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


@pytest.mark.parametrize(
    ("resources", "annotations", "want"),
    [
        ({"cpu": "8"}, {}, False),
        ({"nvidia.com/gpu": "1"}, {}, True),
        ({"nvidia.com/a100": "1"}, {}, True),
        ({"cpu": "8"}, {SPEC: '{"gpu": {"type": "t4-16gb"}}'}, True),
    ],
    ids=["cpu", "gpu", "a name of its own", "states its GPU"],
)
async def test_a_train_job_whose_runtime_asks_for_no_gpu_is_passed_in_silence(
    reviewer: Reviewer, resources: Mapping[str, str], annotations: Mapping[str, str], *, want: bool
) -> None:
    """As a pod without GPUs is: nothing is said, nothing is stored, nothing is changed."""
    reviewer.cluster = WithRuntime(resources)
    template = a_template(product="", container=a_container(command=TRAIN.split(), gpus=0), annotations=annotations)
    body = json.dumps(a_review(a_workload("TrainJob", template=template), kind="TrainJob")).encode()
    response = json.loads(await reviewer.validate(body))["response"]
    assert ("auditAnnotations" in response) is want
    assert want or ("warnings" not in response and "patch" not in json.loads(await reviewer.mutate(body))["response"])


@pytest.mark.parametrize(
    ("command", "want"),
    [
        ("axolotl train /config/lora.yml", "not checked: /config/lora.yml is not"),
        ("torchrun run_clm.py --model_name_or_path $MODEL --do_train", "not checked: the model is $MODEL, whose value is not known here"),
        (
            "torchrun run_clm.py --model_name_or_path $(MODEL) --do_train",
            "not checked: the model is $(MODEL), whose value is not known here",
        ),
    ],
)
async def test_what_is_not_at_hand_is_named(reviewer: Reviewer, command: str, want: str) -> None:
    """The submitter stated no document, and no model of that name: the file or the variable is what is missing."""
    workload = a_workload("Job", template=a_template(product=T4, container=a_container(command=["bash", "-c", command])))
    response = json.loads(await reviewer.validate(json.dumps(a_review(workload)).encode()))["response"]
    (said,) = response["warnings"]
    assert said.startswith(f"peakgate: {want}")
