"""What a TrainJob should ask for, in the form of Kubeflow Trainer's proposal of recommenders (KEP-3328). Pure but for the one call.

The proposal (kubeflow/trainer docs/proposals/3328-automatic-resource-configuration): a TrainJob opts in by the annotation
`trainer.kubeflow.org/autoconf-plugin: NAME`; Trainer holds it back while the plugin of that name, a controller of its own, writes what
it recommends into the TrainJob: resources, number of nodes, and by `spec.runtimePatches`, with itself as the manager, what has no field
of its own. Its design details are open, and patches of a command's arguments are not part of the API yet: a change of the launch is told
in an annotation for a person, never written. This adapter is a function for such a controller, and touches no cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peakgate.client.connect import Client
from peakgate.client.render.suggestions import assignments
from peakgate.client.render.units import gb
from peakgate.hooks.kubernetes.node_labels import MEMORY
from peakgate.hooks.kubernetes.object_job import Unreadable, job_of
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at
from peakgate.hooks.kubernetes.quantities import MEBIBYTE
from peakgate.hooks.kubernetes.requests import GPU
from peakgate.hooks.kubernetes.selection import GREATER
from peakgate.readers.manifests.trainjob import TRAINERS
from peakgate.v1.plain import plain_value
from peakgate.v1.prediction_pb2 import Suggestion, Verdict
from peakgate.v1.prediction_service_pb2 import SuggestResponse

OPT_IN = "trainer.kubeflow.org/autoconf-plugin"
PLUGIN = "peakgate"
MANAGER = "peakgate.io/recommender"
CHANGES = "peakgate.io/recommended-changes"
RESOURCES = frozenset({"gpu.type", "gpu.count", "gpu.memory_bytes", "node.gpus", "parallelism.world_size"})
"""Fields of a job that are resources of a TrainJob; every other one is an argument of its launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """`patch`: a merge patch of the TrainJob, empty for nothing to change. `changes`: of its launch, which no patch can make. `reason`: one
    line for the event and the status."""

    reason: str
    patch: Mapping[str, object] = field(default_factory=dict)
    changes: tuple[str, ...] = ()


def is_asked(train_job: Object, plugin: str = PLUGIN) -> bool:
    """Whether the TrainJob opts in to this plugin."""
    return mapping_at(train_job, "metadata", "annotations").get(OPT_IN) == plugin


def recommend(train_job: Object, runtimes: Sequence[Object], client: Client) -> Recommendation:
    """Asks Suggest about the TrainJob on its runtime. Raises PeakgateError when the service is away or refuses the job."""
    try:
        job = job_of(train_job, runtimes).job
    except Unreadable as error:
        return Recommendation(reason=f"nothing is recommended: {error}")
    return recommended(train_job, client.suggest(job))


def recommended(train_job: Object, answer: SuggestResponse) -> Recommendation:
    """From what Suggest says to the TrainJob's own fields."""
    prediction = answer.prediction
    if prediction.verdict == Verdict.VERDICT_ADMIT:
        need = prediction.peak.bound_bytes
        said = f"fits: a GPU needs {gb(need)}" + (f", {answer.smallest_gpu} is the smallest that holds it" if answer.smallest_gpu else "")
        return Recommendation(reason=said, patch=_patched(train_job, {}, need, ()))
    fitting = [each for each in answer.suggestions if each.fits]
    best = next((each for each in fitting if set(each.changes) <= RESOURCES), fitting[0] if fitting else None)
    if best is None and answer.smallest_gpu and prediction.peak.bound_bytes:
        reason = f"needs a larger GPU: {answer.smallest_gpu} is the smallest that holds it"
        return Recommendation(reason=reason, patch=_patched(train_job, {}, prediction.peak.bound_bytes, ()))
    if best is None:
        return Recommendation(reason=f"nothing is recommended: {prediction.reason}")
    resources = {path: plain_value(value) for path, value in best.changes.items() if path in RESOURCES}
    changes = tuple(assignments(_without(best, resources)))
    patch = _patched(train_job, resources, best.bound_bytes, changes)
    return Recommendation(reason=f"{best.title}: a GPU then needs {gb(best.bound_bytes)}", patch=patch, changes=changes)


def _without(suggestion: Suggestion, resources: Mapping[str, object]) -> Suggestion:
    rest = Suggestion()
    rest.CopyFrom(suggestion)
    for path in resources:
        del rest.changes[path]
    return rest


def _patched(train_job: Object, resources: Mapping[str, object], need_bytes: int, changes: Sequence[str]) -> dict[str, object]:
    spec: dict[str, object] = {}
    trainer = _trainer(train_job, resources)
    if trainer:
        spec["trainer"] = trainer
    if need_bytes:
        spec["runtimePatches"] = [*_of_others(train_job), _runtime_patch(need_bytes)]
    metadata = {"annotations": {CHANGES: "; ".join(changes) or None}} if changes or _told_before(train_job) else {}
    return ({"metadata": metadata} if metadata else {}) | ({"spec": spec} if spec else {})


def _trainer(train_job: Object, resources: Mapping[str, object]) -> dict[str, object]:
    """Nodes and GPUs of each, when their number changes."""
    total = resources.get("gpu.count", resources.get("parallelism.world_size"))
    if not isinstance(total, int | float) or total < 1:
        return {}
    nodes = at(train_job, "spec", "trainer", "numNodes")
    each = resources.get("node.gpus", at(train_job, "spec", "trainer", "resourcesPerNode", "limits", GPU))
    a_node = int(str(each)) if str(each).isascii() and str(each).isdigit() and int(str(each)) else int(total)
    a_node = min(a_node, int(total))
    if int(total) % a_node:
        a_node = int(total)
    wanted: dict[str, object] = {"resourcesPerNode": {"limits": {GPU: str(a_node)}}}
    return wanted | ({"numNodes": int(total) // a_node} if int(total) // a_node != nodes else {})


def _of_others(train_job: Object) -> list[object]:
    """The list is replaced as a whole by a merge patch: what other managers wrote stays in it."""
    return [each for each in list_at(train_job, "spec", "runtimePatches") if at(each, "manager") != MANAGER]


def _runtime_patch(need_bytes: int) -> dict[str, object]:
    """Only nodes whose GPUs have the memory: Gt, because the label is a number of MiB."""
    expression = {"key": MEMORY, "operator": GREATER, "values": [str(-(-need_bytes // MEBIBYTE) - 1)]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    pod = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    job = {"name": TRAINERS[0], "template": {"spec": {"template": {"spec": pod}}}}
    return {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def _told_before(train_job: Object) -> bool:
    return CHANGES in mapping_at(train_job, "metadata", "annotations")
