"""Which objects are judged: kinds that start training, made by a person, that ask for GPUs. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from peakgate.hooks.kubernetes.admission import Admission
from peakgate.hooks.kubernetes.annotations import PREDICTION
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at, text_at
from peakgate.hooks.kubernetes.requests import may_be_gpu
from peakgate.hooks.signs import names_training
from peakgate.readers.manifests.pods import Pods
from peakgate.readers.not_training import trains

KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("", "Pod"): "Pod",
    ("batch", "Job"): "Job",
    ("batch", "CronJob"): "CronJob",
    ("jobset.x-k8s.io", "JobSet"): "JobSet",
    ("kubeflow.org", "PyTorchJob"): "PyTorchJob",
    ("kubeflow.org", "MPIJob"): "MPIJob",
    ("trainer.kubeflow.org", "TrainJob"): "TrainJob",
    ("ray.io", "RayJob"): "RayJob",
    ("batch.volcano.sh", "Job"): "VolcanoJob",
    ("kueue.x-k8s.io", "Workload"): "Workload",
}
"""Group and kind -> the word of it in metrics."""

OTHER_KIND, TRAIN_JOB, CRON_JOB = "other", "TrainJob", "CronJob"
TRAINING = frozenset({"JobSet", "PyTorchJob", "MPIJob", "TrainJob"})
"""Nobody starts a notebook or a server with one of these: when they cannot be read, that is said."""

SHARES = frozenset({"gpu-fraction", "gpu-memory"})
"""Annotations by which KAI and Run:ai give a part of a card to a pod without a resource."""

CREATE, UPDATE = "CREATE", "UPDATE"
_SCRIPT = re.compile(r"[^\s'\";&|]+\.(?:sh|bash)\b")
_RESOURCE = re.compile(r"\bresources\.(?:limits|requests)\.(.+)")
DEEPEST, MOST_NODES = 60, 50_000


def kind_of(admission: Admission) -> str:
    """The word of its kind."""
    return KINDS.get((admission.group, admission.kind), OTHER_KIND)


def is_new(admission: Admission) -> bool:
    """Whether it starts something that was not judged: an object that is created, or a CronJob whose job changes. What a Job or a Pod runs
    is never changed, and a CronJob that is resumed was judged when it was made."""
    if admission.operation == CREATE:
        return True
    return admission.operation == UPDATE and kind_of(admission) == CRON_JOB and _started(admission.object) != _started(admission.old)


def content_of(admission: Admission) -> str:
    """What makes one state of an updated object another one; empty for one that is created."""
    return json.dumps(_started(admission.object), sort_keys=True) if admission.operation == UPDATE else ""


def _started(cron_job: Object) -> tuple[object, ...]:
    """All that its jobs are made of, in pieces, without the name of the prediction that was added."""
    job = mapping_at(cron_job, "spec", "jobTemplate")
    spec = mapping_at(job, "spec")
    pod = mapping_at(spec, "template")
    metadata = mapping_at(pod, "metadata")
    annotations = _without(mapping_at(metadata, "annotations"), PREDICTION)
    return (_without(job, "spec"), _without(spec, "template"), _without(pod, "metadata"), _without(metadata, "annotations"), annotations)


def _without(whole: Object, key: str) -> dict[str, object]:
    return {name: value for name, value in whole.items() if name != key}


def is_owned(admission: Admission) -> bool:
    """Whether a controller made it: then its owner was judged, or the owner's owner, and a refusal would only make it try for ever."""
    return any(at(each, "controller") is True for each in list_at(admission.metadata, "ownerReferences"))


def asks_for_gpus(admission: Admission) -> bool:
    """Whether any container asks for a GPU, or its owner may: a TrainJob's runtime is not part of it."""
    if kind_of(admission) == TRAIN_JOB:
        return True
    return any(_is_gpu_request(each) for each in _mappings(admission.object.get("spec"))) or _has_share(admission.object)


def _is_gpu_request(each: Object) -> bool:
    amounts = (*mapping_at(each, "resources", "limits").items(), *mapping_at(each, "resources", "requests").items())
    return any(may_be_gpu(name) and str(amount) != "0" for name, amount in amounts) or bool(each.get("resourceClaims"))


def names_a_gpu(pods: Pods) -> bool:
    """Whether a container of read pods asks for a resource that may be a GPU."""
    return any((found := _RESOURCE.search(path)) is not None and may_be_gpu(found[1]) for path in pods.spec.leaves)


def _has_share(tree: Object) -> bool:
    return any(not SHARES.isdisjoint(mapping_at(each, "annotations")) for each in _mappings(tree))


def might_train(admission: Admission, *, is_other: bool = False) -> bool:
    """Whether a word of training stands in what it runs, or in the name of an object that runs a script: a pod that does something else, or
    whose program is named for that (`is_other`: an evaluation with a batch size), is nobody's business here."""
    if is_other or kind_of(admission) in TRAINING:
        return kind_of(admission) in TRAINING
    commands = list(_commands(admission.object.get("spec")))
    scripts = (PurePosixPath(each).name for command in commands for each in _SCRIPT.findall(command))
    return any(map(names_training, commands)) or (names_training(admission.name) and any(map(trains, scripts)))


def _commands(spec: object) -> Iterator[str]:
    for each in _mappings(spec):
        yield " ".join(text_at(word) for key in ("command", "args") for word in list_at(each, key))
        yield text_at(each, "entrypoint")


def _mappings(tree: object) -> Iterator[Object]:
    """Every mapping of a tree, to a depth and a number that no real object has."""
    waiting, seen = [(tree, 0)], 0
    while waiting and seen < MOST_NODES:
        value, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST:
            continue
        if isinstance(value, Mapping):
            yield value
            waiting += [(each, depth + 1) for each in value.values() if isinstance(each, Mapping | list)]
        elif isinstance(value, list):
            waiting += [(each, depth + 1) for each in value if isinstance(each, Mapping | list)]
