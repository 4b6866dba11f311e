"""Kubeflow's TrainJob (trainer.kubeflow.org/v1alpha1): a runtime's template with what the job lays over it.

`spec.trainer` and `spec.runtimePatches` (podTemplateOverrides before v2.2, podSpecOverrides before v2.1) change the template of the runtime
that `spec.runtimeRef` names (kubeflow/trainer pkg/apis/trainer/v1alpha1/trainjob_types.go). A runtime that is not in the file is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from peakgate.readers.manifests.pods import Pods, members, number_at
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

KINDS = ("TrainingRuntime", "ClusterTrainingRuntime")
TRAINERS = ("node", "trainer")
"""Names of the replicated job that trains (the runtimes of pkg/runtime, and of the first releases)."""

PATCHES = ("spec.podTemplateOverrides", "spec.podSpecOverrides", "spec.runtimePatches")

RUNTIME_UNKNOWN = "is not in the file: what it says of GPUs, nodes and the command is not read"
"""How the warning of such a runtime ends."""

_LATER = 100_000
"""Members of a list that are laid over others stand behind them."""


def pods_of_train_job(job: Settings, documents: Iterable[Settings], reading: Reading) -> list[Pods]:
    """The pods that train."""
    runtime = _runtime(job, documents)
    if runtime is None:
        name = job("spec.runtimeRef.name")
        what = f"the runtime {name.text[:60]}" if name is not None else "its runtime"
        reading.warnings.append(f"TrainJob: {what} {RUNTIME_UNKNOWN}")
        runtime = Settings()
    spec, metadata = _template(runtime)
    for patch in (_trainer(job), *_patches(job)):
        spec = overlaid(spec, patch)
    for patch in _metadata_patches(job):
        metadata = metadata.merged(patch)
    nodes = number_at(job, "spec.trainer.numNodes") or number_at(runtime, "spec.mlPolicy.numNodes") or 1
    return [Pods(spec=spec, metadata=metadata, count=nodes)]


def _runtime(job: Settings, documents: Iterable[Settings]) -> Settings | None:
    name, kind = job("spec.runtimeRef.name"), job("spec.runtimeRef.kind")
    for each in documents:
        found = each("kind")
        if found is None or found.text not in KINDS or (kind is not None and kind.text != found.text):
            continue
        if name is not None and (other := each("metadata.name")) is not None and other.text == name.text:
            return each
    return None


def _template(runtime: Settings) -> tuple[Settings, Settings]:
    jobs = members(runtime, "spec.template.spec.replicatedJobs")
    named = [each for each in jobs if (name := each("name")) is not None and name.text in TRAINERS]
    template = (named or jobs)[0].under("template.spec.template") if jobs else Settings()
    return template.under("spec"), template.under("metadata")


def _trainer(job: Settings) -> Settings:
    """The trainer's own block as a container."""
    trainer = job.under("spec.trainer")
    parts = ("command", "args", "env", "envFrom", "image")
    leaves = {f"containers.0.{path}": stated for path, stated in trainer.leaves.items() if path.partition(".")[0] in parts}
    leaves |= {f"containers.0.resources.{path}": stated for path, stated in trainer.under("resourcesPerNode").leaves.items()}
    return Settings(leaves)


def _patches(job: Settings) -> Iterator[Settings]:
    for patch in _patches_of_trainers(job):
        for member in _patched_jobs(patch):
            yield member.under("template.spec.template.spec")
        yield patch.under("spec") if patch.has("spec") else patch


def _metadata_patches(job: Settings) -> Iterator[Settings]:
    """Labels and annotations that patches add to the pods."""
    for patch in _patches_of_trainers(job):
        for member in _patched_jobs(patch):
            yield member.under("template.spec.template.metadata")
        yield patch.under("metadata")


def _patches_of_trainers(job: Settings) -> Iterator[Settings]:
    for patch in (each for kind in PATCHES for each in members(job, kind)):
        targets = [each.text for path, each in patch.leaves.items() if re.match(r"targetJobs?\.(\d+\.)?name$", path)]
        if not targets or any(each in TRAINERS for each in targets):
            yield patch


def _patched_jobs(patch: Settings) -> Iterator[Settings]:
    for member in members(patch, "trainingRuntimeSpec.template.spec.replicatedJobs"):
        name = member("name")
        if name is None or name.text in TRAINERS:
            yield member


def overlaid(base: Settings, patch: Settings) -> Settings:
    """A pod's spec with another laid over it: containers by name, members of other lists behind those that are there."""
    names = {stated.text: path.split(".")[1] for path, stated in base.leaves.items() if re.match(r"containers\.\d+\.name$", path)}
    numbers = (path.split(".")[1] for path in base.leaves if path.startswith("containers."))
    first = min(numbers, default="0", key=lambda number: number.zfill(9))
    moved: dict[str, Stated] = {}
    for path, stated in patch.leaves.items():
        if match := re.match(r"containers\.(\d+)\.(.*)", path):
            name = patch(f"containers.{match[1]}.name")
            index = names.get(name.text, first) if name is not None else first
            moved[f"containers.{index}.{_behind(match[2])}"] = stated
        else:
            moved[_behind(path)] = stated
    return Settings({**base.leaves, **moved})


def _behind(path: str) -> str:
    return re.sub(r"^(env|envFrom|volumes|volumeMounts)\.(\d{1,5})(?=\.)", lambda match: f"{match[1]}.{int(match[2]) + _LATER}", path)
