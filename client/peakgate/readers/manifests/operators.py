"""Variables that an operator gives the pods of its kind, by which launchers find each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakgate.readers.manifests.pods import Pods, number_at
from peakgate.readers.place import LAUNCHER, MANIFEST, Place, Stated
from peakgate.readers.settings import Settings

PROCESSES = ("spec.nprocPerNode", "spec.trainer.numProcPerNode", "spec.slotsPerWorker", "spec.elasticPolicy.nProcPerNode")
"""Where a kind says how many processes a pod has (PyTorchJob, TrainJob, MPIJob)."""


def operator_variables(kind: str, workload: Settings, everyone: Sequence[Pods], pods: Pods) -> dict[str, Stated]:
    """Those that say how many there are. Sources: training-operator pkg/controller.v1/pytorch/envvar.go (WORLD_SIZE counts processes) and
    pkg/apis/kubeflow.org/v1/pytorch_defaults.go (DefaultNprocPerNode = auto), pkg/controller.v1/pytorch/elastic.go (a range of nodes),
    trainer pkg/runtime/framework/plugins/torch/torch.go (PET_…), Kubernetes (JOB_COMPLETION_INDEX of an indexed Job)."""
    count = sum(each.count for each in everyone)
    least, most = (number_at(workload, f"spec.elasticPolicy.{bound}Replicas") for bound in ("min", "max"))
    stated = workload(PROCESSES[0]) or workload(PROCESSES[1])
    processes = number_at(workload, *PROCESSES)
    said: dict[str, object] = {}
    if kind == "PyTorchJob":
        said = {"PET_NNODES": count, "PET_NODE_RANK": 0, "WORLD_SIZE": count * max(1, processes), "RANK": 0, "MASTER_PORT": 23456}
        said |= {"PET_NPROC_PER_NODE": stated.text if stated is not None else "auto"}
        said |= {"PET_NNODES": f"{least}:{most}"} if 0 < least < most else {}
    elif kind == "TrainJob":
        said = {"PET_NNODES": pods.count, "PET_NODE_RANK": 0, "PET_NPROC_PER_NODE": stated.text if stated is not None else "auto"}
    elif kind in ("Job", "JobSet", "CronJob"):
        said = {"JOB_COMPLETION_INDEX": 0}
    place = Place(kind=LAUNCHER, key=f"what a {kind} sets")
    places = {"PET_NPROC_PER_NODE": replace(stated.place, kind=MANIFEST)} if stated is not None else {}
    return {name: Stated(str(value), places.get(name, place)) for name, value in said.items()}
