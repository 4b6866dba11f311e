"""What a workload names and the API server holds: asked for once, within its time, and read as if it stood in the object."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.admission_reviews import T4, TRAIN, a_container, a_template, a_workload

from peakgate.hooks.kubernetes.admission import Admission
from peakgate.hooks.kubernetes.cluster import READ_SECONDS, ApiCluster
from peakgate.hooks.kubernetes.facts import Facts, with_devices
from peakgate.hooks.kubernetes.objects import Object
from peakgate.hooks.kubernetes.reading import read_object
from peakgate.hooks.kubernetes.workload_cards import cards_of_workload

RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {
        "mlPolicy": {"numNodes": 2},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {"name": "node", "template": {"spec": {"template": a_template(product=T4, container=a_container(gpus=4))}}}
                ]
            }
        },
    },
}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"BATCH": "4", "run.sh": TRAIN}}
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus", "namespace": "team-a"},
    "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "large", "count": 4}}]}}},
}
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "large"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}},
                           {"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB HBM3'"}}]},
}  # fmt: skip


@dataclass
class FakeApi:
    """Holds some objects, and counts how often it was asked."""

    seconds: float = 0.0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    found_runtime: Object = field(default_factory=lambda: RUNTIME)

    def config_map(self, namespace: str, name: str) -> Object | None:
        """One of core/v1."""
        return self._found(MAP if name == "settings" else None, namespace, name)

    def runtime(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of trainer.kubeflow.org."""
        return self._found(self.found_runtime if name == "torch" else None, namespace, kind, name)

    def claim(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of resource.k8s.io."""
        return self._found({**CLAIM, "kind": kind} if name == "gpus" else None, namespace, kind, name)

    def device_class(self, name: str) -> Object | None:
        """One of resource.k8s.io."""
        return self._found(CLASS if name == "large" else None, name)

    def namespace(self, name: str) -> Object | None:
        """One of core/v1."""
        return self._found({"metadata": {"labels": {"peakgate.io/mode": "enforce"}}}, name)

    def _found(self, found: Object | None, *asked: str) -> Object | None:
        self.asked.append(asked)
        time.sleep(self.seconds)
        return found


@pytest.fixture
def executor() -> Iterator[Executor]:
    """Threads for its calls."""
    with ThreadPoolExecutor(2) as found:
        yield found


def cluster(api: FakeApi, executor: Executor, said: list[str] | None = None) -> ApiCluster:
    """A cluster over an API."""
    told = said if said is not None else []
    return ApiCluster(api=api, executor=executor, tell=lambda _, text: told.append(text))


def admission(workload: dict[str, Any]) -> Admission:
    """The review of an object."""
    return Admission(uid="u", kind=workload["kind"], name="x1", namespace="team-a", object=workload)


async def test_the_runtime_of_a_train_job_is_read(executor: Executor) -> None:
    """Its GPUs and its card; then nothing of the job is missing."""
    api = FakeApi()
    job = a_workload("TrainJob", template=a_template(product="", container=a_container(command=TRAIN.split(), gpus=0)))
    alone = read_object(admission(job))
    assert alone.is_partial
    beside = await cluster(api, executor).named_by(job)
    read = read_object(admission(job), beside)
    assert not read.is_partial
    assert read.job is not None
    assert (read.job.node.gpus, read.job.gpu.type) == (4, "t4-16gb")
    assert api.asked == [("", "ClusterTrainingRuntime", "torch")]


async def test_a_mounted_script_and_variables_are_read(executor: Executor) -> None:
    """From a config map, as a container sees them."""
    container = a_container(command=["bash", "/scripts/run.sh"]) | {
        "volumeMounts": [{"name": "v", "mountPath": "/scripts"}],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
    }
    job = a_workload(template=a_template(container=container))
    job["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "settings"}}]
    assert read_object(admission(job)).job is None
    read = read_object(admission(job), await cluster(FakeApi(), executor).named_by(job))
    assert read.job is not None
    assert read.job.batch.micro_batch_size == 1
    assert "run.sh" in read.sources["batch.micro_batch_size"]


async def test_what_was_read_is_kept_for_a_while(executor: Executor) -> None:
    """A burst of equal jobs asks once, also for what is not there."""
    api = FakeApi()
    found = cluster(api, executor)
    for name in ("settings", "absent"):
        container = a_container() | {"envFrom": [{"configMapRef": {"name": name}}]}
        job = a_workload(template=a_template(container=container))
        got = [len(await found.named_by(job)) for _ in range(3)]
        assert got == [int(name == "settings")] * 3
    assert len(api.asked) == 2


async def test_a_slow_api_server_is_not_waited_for(executor: Executor) -> None:
    """What comes too late is left out, and told."""
    said: list[str] = []
    began = time.monotonic()
    job = a_workload("TrainJob")
    assert await cluster(FakeApi(seconds=READ_SECONDS + 0.3), executor, said).named_by(job) == []
    assert time.monotonic() - began < READ_SECONDS + 0.25
    assert len(said) == 1


async def test_the_label_of_a_namespace_is_its_wish(executor: Executor) -> None:
    """As the API server has it now."""
    assert await cluster(FakeApi(), executor).modes_of("team-a") == ["enforce"]


@pytest.mark.parametrize(("key", "kind"), [("resourceClaimTemplateName", "ResourceClaimTemplate"), ("resourceClaimName", "ResourceClaim")])
async def test_claims_are_read_with_the_classes_that_they_name(executor: Executor, key: str, kind: str) -> None:
    """Then the card and the number of GPUs are known; what is read of devices is no part of the launch."""
    api = FakeApi()
    job = a_workload(template=a_template(product="", container=a_container(command=TRAIN.split(), gpus=0)))
    job["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "g", key: "gpus"}, {"name": "other", key: "absent"}]
    beside = await cluster(api, executor).named_by(job)
    assert sorted(api.asked) == sorted([("team-a", kind, "gpus"), ("team-a", kind, "absent"), ("large",)])
    read = read_object(admission(job), beside)
    assert [each["kind"] for each in read.devices] == [kind, "DeviceClass"]
    assert read.sources == read_object(admission(job)).sources
    job["spec"]["template"]["spec"]["resourceClaims"].pop()
    cards = cards_of_workload(read_object(admission(job), beside).pods, with_devices(Facts(), "team-a", read.devices))
    assert ([each.gpu for each in cards.candidates], cards.gpus, cards.doubt) == (["h100-80gb"], 4, "")


async def test_the_claims_of_a_runtime_are_read_where_the_job_is(executor: Executor) -> None:
    """A runtime of the cluster has no namespace, the claims that its pods name have the TrainJob's."""
    api = FakeApi()
    node = {"spec": {"containers": [a_container(gpus=0)], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpus"}]}}
    api.found_runtime = RUNTIME | {"spec": {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": node}}}]}}}}
    beside = await cluster(api, executor).named_by(a_workload("TrainJob"))
    assert [each["kind"] for each in beside] == ["ClusterTrainingRuntime", "ResourceClaimTemplate", "DeviceClass"]
    assert ("team-a", "ResourceClaimTemplate", "gpus") in api.asked
