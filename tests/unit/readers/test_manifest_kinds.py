"""Where each kind of workload has its pods, and how many."""

from __future__ import annotations

import re

import pytest
from tests.unit.readers.manifest import TRAIN, around, launch_of, launches

from peakgate.readers.files import GivenFiles
from peakgate.readers.manifests.pods import pods_of
from peakgate.readers.place import Stated
from peakgate.readers.read import read_file
from peakgate.readers.settings import read_yaml

POD = f"spec: {{containers: [{{name: pytorch, {TRAIN.replace(': [', ': [')}, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]}}"
WORKER = POD.replace(TRAIN, "command: [/usr/sbin/sshd, -De]")
LAUNCHER = "spec: {containers: [{name: launcher, command: [mpirun, -np, '16', python, train.py]}]}"


def pytorch_job(roles: str, more: str = "") -> str:
    """A PyTorchJob."""
    return f"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: a}}\nspec:\n  {more}\n  pytorchReplicaSpecs:\n{roles}"


@pytest.mark.parametrize(
    ("roles", "want_gpus"),
    [
        (f"    Master: {{replicas: 1, template: {{{POD}}}}}\n    Worker: {{replicas: 3, template: {{{POD}}}}}\n", 32),
        (f"    Worker: {{replicas: 2, template: {{{POD}}}}}\n", 16),
        (f"    Master: {{template: {{{POD}}}}}\n", 8),
    ],
    ids=["a master and workers", "workers alone", "a master alone"],
)
def test_pytorch_jobs_count_their_roles(roles: str, want_gpus: int) -> None:
    """Each role is one pod unless it says otherwise."""
    assert around(pytorch_job(roles)) == {"gpu.count": want_gpus, "node.gpus": 8}


def test_a_pytorch_job_tells_its_pods_how_many_there_are() -> None:
    """The variables that torchrun reads, and those that a script does; the pod's own env wins."""
    env = POD.replace("name: pytorch", "name: pytorch, env: [{name: MASTER_PORT, value: '1'}]")
    launch = launch_of(pytorch_job(f"    Worker: {{replicas: 2, template: {{{env}}}}}\n", "nprocPerNode: '8'"))
    got = {name: stated.text for name, stated in launch.environment.leaves.items()}
    want = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "8", "WORLD_SIZE": "16", "RANK": "0", "PET_NODE_RANK": "0", "MASTER_PORT": "1"}
    assert {name: got[name] for name in want} == want
    places = {name: str(launch.environment.leaves[name].place) for name in ("PET_NNODES", "PET_NPROC_PER_NODE", "MASTER_PORT")}
    assert places["PET_NNODES"] == "what a PyTorchJob sets"
    assert re.fullmatch(r"\S+:\d+ spec.nprocPerNode", places["PET_NPROC_PER_NODE"])
    assert places["MASTER_PORT"].endswith(" MASTER_PORT")


def test_a_pytorch_job_starts_a_process_for_each_gpu() -> None:
    """Where it does not say how many, the operator's default is auto."""
    torchrun = POD.replace("[python, train.py", "[torchrun, train.py")
    launch = launch_of(pytorch_job(f"    Worker: {{replicas: 2, template: {{{torchrun}}}}}\n"))
    assert launch.around.get("parallelism.world_size") == 16


@pytest.mark.parametrize(("most", "want"), [(4, True), (1, False)])
def test_an_elastic_pytorch_job_runs_on_a_range_of_nodes(most: int, want: bool) -> None:
    """How many come nobody knows, so that what the fewest need is no verdict."""
    torchrun = POD.replace("[python, train.py", "[torchrun, train.py")
    policy = f"elasticPolicy: {{minReplicas: 1, maxReplicas: {most}}}"
    launch = launch_of(pytorch_job(f"    Worker: {{replicas: 1, template: {{{torchrun}}}}}\n", policy))
    assert launch.around.get("parallelism.world_size") == 8
    assert launch.may_not_run is want


def test_roles_with_other_cards_are_told() -> None:
    """A master with one GPU beside workers with eight."""
    one = POD.replace("nvidia.com/gpu: 8", "nvidia.com/gpu: 1")
    launch = launch_of(pytorch_job(f"    Master: {{template: {{{one}}}}}\n    Worker: {{replicas: 2, template: {{{POD}}}}}\n"))
    assert (launch.around.get("gpu.count"), launch.around.get("node.gpus")) == (17, 8)
    assert "pods with 1" in launch.around.warnings[0]


def object_of(kind: str, spec: str, api: str = "kubeflow.org/v1") -> str:
    """An object with a spec in flow style."""
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"


KINDS = {
    "CronJob": ("schedule: '@daily', jobTemplate: {spec: {template: {POD}}}", 8),
    "JobSet": ("replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 3, completions: 3, template: {POD}}}}]", 48),
    "MPIJob": ("slotsPerWorker: 8, mpiReplicaSpecs: {Launcher: {template: {LAUNCHER}}, Worker: {replicas: 2, template: {WORKER}}}", 16),
    "Job": ("minAvailable: 3, tasks: [{name: master, replicas: 1, template: {POD}}, {name: worker, replicas: 2, template: {POD}}]", 24),
    "PaddleJob": ("paddleReplicaSpecs: {Worker: {replicas: 4, template: {POD}}}", 32),
    "StatefulSet": ("replicas: 2, template: {POD}", 16),
    "Workload": ("podSets: [{count: 5, template: {POD}}]", 40),
}
"""Kind -> its spec, and the GPUs of all pods; the Job is Volcano's."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_counts_its_gpus(kind: str) -> None:
    """And its command is found, also where another pod starts it."""
    spec, want_gpus = KINDS[kind]
    text = object_of(
        kind, spec.replace("{POD}", f"{{{POD}}}").replace("{WORKER}", f"{{{WORKER}}}").replace("{LAUNCHER}", f"{{{LAUNCHER}}}")
    )
    assert launch_of(text).program == "train.py"
    assert around(text)["gpu.count"] == want_gpus
    assert around(text)["node.gpus"] == 8


def test_a_bare_pod_is_one() -> None:
    """Its spec is the template."""
    assert around(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{POD}\n") == {"gpu.count": 8, "node.gpus": 8}


def test_a_ray_job_has_an_entrypoint() -> None:
    """GPUs of the head and of the groups; what is nested in a group's hosts counts."""
    head = POD.replace(TRAIN, "image: ray").replace("nvidia.com/gpu: 8", "cpu: 8")
    worker = POD.replace(TRAIN, "image: ray")
    text = (
        "apiVersion: ray.io/v1\nkind: RayJob\nspec:\n  entrypoint: python train.py --lr 1\n  rayClusterSpec:\n"
        f"    headGroupSpec: {{template: {{{head}}}}}\n"
        f"    workerGroupSpecs:\n      - {{replicas: 2, numOfHosts: 2, groupName: g, template: {{{worker}}}}}\n"
    )
    launch = launch_of(text)
    assert [word.text for word in launch.words] == ["train.py", "--lr", "1"]
    assert launch.words[0].place.line == 4
    assert launch.around.get("gpu.count") == 32


TRAIN_JOB = f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: a}}
spec:
  runtimeRef: {{name: torch-distributed}}
  trainer:
    numNodes: 2
    {TRAIN}
    resourcesPerNode: {{requests: {{nvidia.com/gpu: 4}}}}
"""
RUNTIME = """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 3, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
        - {name: model-initializer, template: {spec: {template: {spec: {containers: [{name: m, command: [python, fetch.py]}]}}}}}
        - name: node
          template:
            spec:
              template:
                spec:
                  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}
                  containers:
                    - name: node
                      command: [python, base.py]
                      env: [{name: A, value: '1'}, {name: B, value: '1'}]
                      resources: {limits: {nvidia.com/gpu: 1, memory: 64Gi}}
"""
RUNTIME_SPEC = "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: %s}}}}]}}}"
PATCHES = {
    "runtimePatches": f"[{{manager: m, trainingRuntimeSpec: {RUNTIME_SPEC}}}]",
    "podTemplateOverrides": "[{targetJobs: [{name: node}], spec: %s}]",
    "podSpecOverrides": "[{targetJobs: [{name: node}], %s}]",
}
PATCH = "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}, containers: [{name: node, env: [{name: B, value: '2'}]}]"


def test_a_train_job_whose_runtime_is_elsewhere() -> None:
    """Its own trainer block is read, and the rest is told."""
    launch = launch_of(TRAIN_JOB)
    assert (launch.around.get("gpu.count"), launch.around.get("node.gpus"), launch.program) == (8, 4, "train.py")
    assert "torch-distributed is not in the file" in launch.around.warnings[0]
    assert launch.environment.leaves["PET_NNODES"].text == "2"


def test_a_train_job_lies_over_its_runtime() -> None:
    """Command, GPUs and nodes of the job; the card, memory and variables of the runtime."""
    launch = launch_of(TRAIN_JOB.replace("    numNodes: 2\n", "") + RUNTIME)
    got = {path: stated.value for path, stated in launch.around.fields.items()}
    assert got == {"gpu.count": 3, "node.gpus": 1, "gpu.type": "l4-24gb", "node.host_memory_bytes": 64 << 30}
    assert launch.program == "train.py"
    assert launch.around.warnings == []
    assert [each.program for each in launches(RUNTIME) if each.words] == []


@pytest.mark.parametrize("kind", PATCHES)
def test_patches_of_a_train_job_change_its_pods(kind: str) -> None:
    """In the form of every version: the selector is another one, variables are merged by name."""
    patch = PATCHES[kind] % (PATCH if kind == "podSpecOverrides" else f"{{{PATCH}}}")
    launch = launch_of(TRAIN_JOB + f"  {kind}: {patch}\n" + RUNTIME)
    assert launch.around.get("gpu.type") == "h100-80gb"
    assert (launch.environment.leaves["A"].text, launch.environment.leaves["B"].text) == ("1", "2")


def test_a_patch_of_another_job_is_left_out() -> None:
    """The initializer's node is not the trainer's."""
    patch = PATCHES["podTemplateOverrides"].replace("name: node", "name: model-initializer") % f"{{{PATCH}}}"
    assert launch_of(TRAIN_JOB + f"  podTemplateOverrides: {patch}\n" + RUNTIME).around.get("gpu.type") == "l4-24gb"


UNMOUNTED = """
apiVersion: v1
kind: ConfigMap
metadata: {name: configs}
data:
  lora.yaml: "base_model: m/m\\nmicro_batch_size: 3\\n"
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  trainer: {numNodes: 1, command: [axolotl, train, /cfg/lora.yaml], resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
"""
OTHER_MAP = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: others}
data: {lora.yaml: "base_model: n/n"}
"""


def test_a_config_map_that_a_runtime_elsewhere_mounts_is_found_by_its_keys_name() -> None:
    """With a warning; of two maps with the key neither is taken."""
    found = read_file("job.yaml", GivenFiles({"job.yaml": UNMOUNTED}))
    assert (found.get("model.preset"), found.get("batch.micro_batch_size")) == ("m/m", 3)
    assert any(each.startswith("/cfg/lora.yaml: no volume of the file mounts it; the config map configs") for each in found.warnings)
    of_two = read_file("job.yaml", GivenFiles({"job.yaml": UNMOUNTED + OTHER_MAP}))
    assert of_two.get("model.preset") is None


def test_containers_come_in_the_order_of_the_file() -> None:
    """The first of two that train is the one that is read, as a person reads it."""
    pod = read_yaml("spec: {containers: [{name: first}, {name: second}, {name: third}]}", "pod.yaml")[0]
    assert [text_of(each("name")) for each in pods_of(pod)[0].containers()] == ["first", "second", "third"]


def text_of(stated: Stated | None) -> str:
    """What stands there."""
    return stated.text if stated is not None else ""
