"""AdmissionReviews of many kinds: builders with full defaults, and a table of bodies with what has to become of each."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.contract.sources import ROOT

RECORDED = {path.stem: path.read_bytes() for path in sorted((ROOT / "tests/golden/admission_reviews").glob("*.json"))}
"""Bodies that a real API server sent."""

H100, T4 = "NVIDIA-H100-80GB-HBM3", "Tesla-T4"
SPEC = "peakgate.io/spec"
FITS: Mapping[str, Any] = {"model": {"preset": "gpt2"}, "batch": {"micro_batch_size": 1, "sequence_length": 512}}
TOO_LARGE: Mapping[str, Any] = {
    "model": {"preset": "llama-3.1-8b"},
    "batch": {"micro_batch_size": 8, "sequence_length": 8192},
    "parallelism": {"sharding": "none"},
}
MENDABLE: Mapping[str, Any] = {
    "model": {"preset": "gpt2-xl"},
    "batch": {"micro_batch_size": 64, "sequence_length": 1024},
    "checkpointing": {"mode": "none"},
    "framework": {"name": "huggingface", "expandable_segments": False},
}
"""Too large for an H100, and a smaller micro-batch fits."""

OPEN: Mapping[str, Any] = {"model": {"preset": "gpt2"}}
"""No micro-batch: undecided."""

TRAIN = (
    "torchrun --nproc-per-node=1 train.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --max_seq_length 512 "
    "--output_dir /tmp/x --bf16 True"
)
LARGE = (
    "torchrun --nproc-per-node=1 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 4 --block_size 4096"
)
APIS = {
    "Pod": ("", "v1", "pods"),
    "Job": ("batch", "v1", "jobs"),
    "CronJob": ("batch", "v1", "cronjobs"),
    "JobSet": ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
    "PyTorchJob": ("kubeflow.org", "v1", "pytorchjobs"),
    "MPIJob": ("kubeflow.org", "v2beta1", "mpijobs"),
    "TrainJob": ("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
    "RayJob": ("ray.io", "v1", "rayjobs"),
    "VolcanoJob": ("batch.volcano.sh", "v1alpha1", "jobs"),
    "Workload": ("kueue.x-k8s.io", "v1beta1", "workloads"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
}
KINDS = [kind for kind in APIS if kind != "StatefulSet"]


def a_container(*, command: Sequence[str] = (), gpus: int = 1, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A container that asks for GPUs."""
    found: dict[str, Any] = {"name": "train", "image": "train"}
    if command:
        found["command"] = list(command)
    if gpus:
        found["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    if env:
        found["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return found


def a_template(
    *, product: str = H100, annotations: Mapping[str, str] | None = None, container: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A pod template."""
    spec: dict[str, Any] = {"containers": [container or a_container(command=["sleep", "1"])], "restartPolicy": "Never"}
    if product:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": product}
    return {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}


def a_workload(
    kind: str = "Job", *, template: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An object as the API server has filled it in."""
    group, version, _ = APIS[kind]
    pod = copy.deepcopy(dict(template or a_template()))
    specs: dict[str, Any] = {
        "Job": {"template": pod, "parallelism": 1},
        "CronJob": {"schedule": "@daily", "jobTemplate": {"spec": {"template": pod}}},
        "JobSet": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {"template": pod}}}]},
        "PyTorchJob": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": pod}}},
        "MPIJob": {"slotsPerWorker": 1, "mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": pod}}},
        "RayJob": {"rayClusterSpec": {"workerGroupSpecs": [{"replicas": 1, "template": pod}]}},
        "VolcanoJob": {"tasks": [{"name": "w", "replicas": 1, "template": pod}]},
        "Workload": {"podSets": [{"name": "main", "count": 1, "template": pod}]},
        "StatefulSet": {"replicas": 1, "template": pod},
    }
    own = {"name": "x1", "namespace": "team-a", "uid": str(uuid.uuid4()), **(metadata or {})}
    base = {"apiVersion": f"{group}/{version}".lstrip("/"), "kind": "Job" if kind == "VolcanoJob" else kind}
    if kind == "Pod":
        return base | pod | {"metadata": {**pod["metadata"], **own}}
    if kind == "TrainJob":
        container = pod["spec"]["containers"][0]
        trainer = {"numNodes": 1, "resourcesPerNode": container.get("resources", {}), "command": container.get("command", [])}
        patch = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": pod["spec"].get("nodeSelector", {})}}
        specs[kind] = {"runtimeRef": {"name": "torch"}, "trainer": trainer, "podTemplateOverrides": [patch]}
        own["annotations"] = {**pod["metadata"]["annotations"], **own.get("annotations", {})}
    return base | {"metadata": own, "spec": specs[kind]}


def a_review(
    workload: Mapping[str, Any] | None = None,
    *,
    kind: str = "Job",
    operation: str = "CREATE",
    namespace: str = "team-a",
    user: str = "alice",
    groups: Sequence[str] = ("ml",),
    dry_run: bool = False,
    old: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A whole review of an object; `old`: as it was before an update."""
    group, version, resource = APIS[kind]
    named = {"group": group, "version": version}
    item = dict(workload or a_workload(kind))
    request = {
        "uid": str(uuid.uuid4()),
        "kind": {**named, "kind": item["kind"]},
        "resource": {**named, "resource": resource},
        "name": item["metadata"]["name"],
        "namespace": namespace,
        "operation": operation,
        "userInfo": {"username": user, "groups": list(groups)},
        "object": item,
        "oldObject": dict(old) if old is not None else None,
        "dryRun": dry_run,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def stating(kind: str, job: Mapping[str, Any], *, product: str = H100, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A workload whose pods state a job."""
    return a_workload(kind, template=a_template(product=product, annotations={SPEC: json.dumps(job)}), metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One body. `says`: words in its warnings or its message, none of them when empty."""

    name: str
    review: Mapping[str, Any]
    outcome: str
    verdict: str = "none"
    says: str = ""

    @property
    def body(self) -> bytes:
        """As it is sent."""
        return json.dumps(self.review).encode()

    @property
    def is_allowed(self) -> bool:
        """Whether the object goes on."""
        return self.outcome != "denied"


MODES = {"off": "off-a", "audit": "audit-a", "warn": "team-a", "enforce": "enforced-a"}
"""Mode -> a namespace in which it holds."""

RULES = """mode: warn
namespaces:
  - {names: ["off-*"], mode: off}
  - {names: ["audit-*"], mode: audit}
  - {names: ["enforced-*"], mode: enforce}
overrides: {groups: [sre]}
"""
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": str(uuid.uuid4()), "controller": True}


def cases() -> list[Case]:
    """All of them."""
    return [*_by_kind(), *_by_mode(), *_by_launch(), *_by_own_words(), *_by_fault(), *_by_selection(), *_by_wish(), *_not_ours()]


def _by_kind() -> Iterator[Case]:
    enforced = MODES["enforce"]
    for kind in KINDS:
        yield Case(name=f"{kind} fits", review=a_review(stating(kind, FITS), kind=kind), outcome="allowed", verdict="admit")
        large = stating(kind, TOO_LARGE, product=T4)
        warned = a_review(large, kind=kind)
        denied = a_review(large, kind=kind, namespace=enforced)
        partly = kind == "TrainJob"  # its runtime is not known, and may say otherwise
        yield Case(name=f"{kind} too large, warned", review=warned, outcome="would_deny", verdict="reject", says="too few")
        outcome, says = ("would_deny", "a part of the launch") if partly else ("denied", "too few")
        yield Case(name=f"{kind} too large, enforced", review=denied, outcome=outcome, verdict="reject", says=says)
        owned = a_review(stating(kind, TOO_LARGE, product=T4, metadata={"ownerReferences": [OWNER]}), kind=kind, namespace=enforced)
        yield Case(name=f"{kind} of a controller", review=owned, outcome="skipped")


def _by_mode() -> Iterator[Case]:
    large, unclear = stating("Job", MENDABLE), stating("Job", OPEN)
    rows = {
        "off": ("skipped", "none", "", "skipped", "none", ""),
        "audit": ("would_deny", "reject", "", "allowed", "undecided", ""),
        "warn": ("would_deny", "reject", "admitted all the same", "allowed", "undecided", "cannot be judged"),
        "enforce": ("denied", "reject", "cheapest change", "allowed", "undecided", "cannot be judged"),
    }
    for mode, (outcome, verdict, says, open_outcome, open_verdict, open_says) in rows.items():
        namespace = MODES[mode]
        yield Case(name=f"{mode}, too large", review=a_review(large, namespace=namespace), outcome=outcome, verdict=verdict, says=says)
        dry = a_review(large, namespace=namespace, dry_run=True)
        yield Case(name=f"{mode}, too large, dry run", review=dry, outcome=outcome, verdict=verdict, says=says)
        yield Case(
            name=f"{mode}, open", review=a_review(unclear, namespace=namespace), outcome=open_outcome, verdict=open_verdict, says=open_says
        )
    for mode in ("off", "enforce"):
        labelled = stating("Job", TOO_LARGE, product=T4, metadata={"labels": {"peakgate.io/mode": mode}})
        outcome, says = ("denied", "too few") if mode == "enforce" else ("would_deny", "too few")
        yield Case(name=f"label {mode} in warn", review=a_review(labelled), outcome=outcome, verdict="reject", says=says)


def launching(*command: str, product: str = T4, stated: str | None = None) -> dict[str, Any]:
    """A job whose pod runs a command; `stated`: what its annotation says beside that."""
    annotations = {} if stated is None else {SPEC: stated}
    return a_workload(template=a_template(product=product, annotations=annotations, container=a_container(command=command)))


def _by_launch() -> Iterator[Case]:
    enforced = MODES["enforce"]
    argv, shell = launching(*TRAIN.split(), product=H100), launching("bash", "-c", TRAIN, product=H100)
    yield Case(name="argv fits", review=a_review(argv), outcome="allowed", verdict="admit")
    yield Case(name="argv in a shell", review=a_review(shell), outcome="allowed", verdict="admit")
    branches = {
        "if": f"if [ -f /data/small ]; then {LARGE}; else {TRAIN}; fi",
        "if without else": f"if [ -f /data/large ]; then {LARGE}; fi; {TRAIN}",
        "case": f'case "$SIZE" in large) {LARGE};; *) {TRAIN};; esac',
        "what runs when it fails": f"{LARGE} || {TRAIN}",
        "what runs when it fails, by if": f"if ! {LARGE}; then {TRAIN}; fi",
    }
    for name, script in branches.items():
        review = a_review(launching("bash", "-c", script), namespace=enforced)
        says = "a part of launch 1 of 2 is" if name == "if without else" else "a part of the launch"
        yield Case(name=f"a branch of {name}", review=review, outcome="would_deny", verdict="reject", says=says)
    for script in (f"{LARGE} || exit 1", f"{LARGE} || {LARGE}", f"until {LARGE}; do sleep 5; done", f"cd /work && {LARGE} && {TRAIN}"):
        review = a_review(launching("bash", "-c", script), namespace=enforced)
        name = script.replace(LARGE, "it").replace(TRAIN, "another")
        yield Case(name=name, review=review, outcome="denied", verdict="reject", says="too few")


def _by_own_words() -> Iterator[Case]:
    enforced = MODES["enforce"]
    env = a_workload(template=a_template(product=T4, container=a_container(env={"PEAKGATE_SPEC": json.dumps(TOO_LARGE)})))
    yield Case(name="env states", review=a_review(env, namespace=enforced), outcome="denied", verdict="reject", says="too few")
    own = a_workload(template=a_template(product=T4), metadata={"annotations": {SPEC: json.dumps(TOO_LARGE)}})
    says = "to try it: annotate peakgate.io/try=REASON; more: peakgate explain"
    yield Case(name="workload states", review=a_review(own, namespace=enforced), outcome="denied", verdict="reject", says=says)
    nearer = stating("Job", FITS, metadata={"annotations": {SPEC: json.dumps(TOO_LARGE)}})
    yield Case(name="the pods' word is nearer", review=a_review(nearer, namespace=enforced), outcome="allowed", verdict="admit")
    field = {"peakgate.io/model.preset": "gpt2", "peakgate.io/batch.micro_batch_size": "1", "peakgate.io/batch.sequence_length": "512"}
    annotated, labelled = a_workload(template=a_template(annotations=field)), a_workload(metadata={"labels": field})
    yield Case(name="a field an annotation", review=a_review(annotated), outcome="allowed", verdict="admit")
    yield Case(name="a field a label", review=a_review(labelled), outcome="allowed", verdict="admit")


def _by_fault() -> Iterator[Case]:
    enforced = MODES["enforce"]
    broken = a_workload(template=a_template(annotations={SPEC: "{model: ["}))
    yield Case(name="a spec that is none", review=a_review(broken, namespace=enforced), outcome="unread", says=SPEC)
    for name, text in {"no YAML": "{model: [", "no mapping": "[1, 2]"}.items():
        meant = launching(*LARGE.split(), stated=text)
        yield Case(name=f"a launch beside a spec that is {name}", review=a_review(meant, namespace=enforced), outcome="unread", says=SPEC)
    empty = launching(*LARGE.split(), stated="")
    yield Case(name="an empty spec", review=a_review(empty, namespace=enforced), outcome="denied", verdict="reject", says="too few")
    unknown = stating("Job", {"model": {"preset": "no-such-model"}, "batch": {"micro_batch_size": 1, "sequence_length": 8}})
    yield Case(name="an unknown model", review=a_review(unknown, namespace=enforced), outcome="unread", says="no-such-model")
    wrong = stating("Job", {"model": {"preset": "gpt2"}, "batch": {"micro_batch_size": "many"}})
    yield Case(name="a wrong field", review=a_review(wrong, namespace=enforced), outcome="unread", says="micro_batch_size")
    path = stating("Job", {"model": {"hf_config": "/etc/passwd"}, "batch": {"micro_batch_size": 1, "sequence_length": 8}})
    yield Case(name="a path is not opened", review=a_review(path, namespace=enforced), outcome="unread", says="names a file")


def _by_selection() -> Iterator[Case]:
    enforced = MODES["enforce"]
    nameless = stating("Job", TOO_LARGE, product="")
    yield Case(name="no GPU is named", review=a_review(nameless, namespace=enforced), outcome="allowed", verdict="undecided", says="judged")
    large = {**TOO_LARGE, "batch": {"micro_batch_size": 1, "sequence_length": 1024}, "precision": {"recipe": "bf16"}}
    either = stating("Job", large, product="")
    values = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H200", T4]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [values]}]}
    either["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    yield Case(name="fits on one of two", review=a_review(either, namespace=enforced), outcome="allowed", verdict="undecided", says="pick")


def _by_wish() -> Iterator[Case]:
    enforced = MODES["enforce"]

    def wishing(**annotations: str) -> dict[str, Any]:
        named = {f"peakgate.io/{name}": value for name, value in annotations.items()}
        return stating("Job", TOO_LARGE, product=T4, metadata={"annotations": named})

    plainly = a_review(wishing(), namespace=enforced)
    says = "refused; to try it: annotate peakgate.io/try=REASON; more: peakgate explain"
    yield Case(name="how to try it is said", review=plainly, outcome="denied", verdict="reject", says=says)
    own = wishing(override="measured before")
    yield Case(
        name="override of a group",
        review=a_review(own, namespace=enforced, groups=["sre"]),
        outcome="overridden",
        verdict="reject",
        says="override",
    )
    yield Case(name="override of nobody", review=a_review(own, namespace=enforced), outcome="denied", verdict="reject", says="not for you")
    empty = wishing(override="")
    yield Case(
        name="an empty override",
        review=a_review(empty, namespace=enforced, groups=["sre"]),
        outcome="denied",
        verdict="reject",
        says="refused",
    )
    tried = a_review(wishing(**{"try": "the paper did"}), namespace=enforced, dry_run=True)
    yield Case(name="a try in a dry run", review=tried, outcome="denied", verdict="reject", says="dry run")


def _not_ours() -> Iterator[Case]:
    enforced = MODES["enforce"]
    yield Case(name="another kind", review=a_review(stating("StatefulSet", TOO_LARGE), kind="StatefulSet"), outcome="skipped")
    for operation in ("UPDATE", "DELETE", "CONNECT"):
        yield Case(name=operation, review=a_review(stating("Job", TOO_LARGE), operation=operation, namespace=enforced), outcome="skipped")
    no_gpu = a_workload("Pod", template=a_template(annotations={SPEC: json.dumps(TOO_LARGE)}, container=a_container(gpus=0)))
    yield Case(name="a pod without GPUs", review=a_review(no_gpu, kind="Pod", namespace=enforced), outcome="skipped")
    zero = stating("Job", TOO_LARGE)
    zero["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 0}}
    yield Case(name="a job with zero GPUs", review=a_review(zero, namespace=enforced), outcome="skipped")
    notebook = a_workload("Pod", template=a_template(container=a_container(command=["start-notebook.sh", "--port=8888"])))
    yield Case(name="a notebook", review=a_review(notebook, kind="Pod", namespace=enforced), outcome="skipped")
    server = a_workload("Job", template=a_template(container=a_container(command=["python", "serve.py"])))
    yield Case(name="a server", review=a_review(server, namespace=enforced), outcome="skipped")
    for command in ("lm_eval --model hf --batch_size 8", "text-generation-launcher --max-batch-size 16"):
        other = a_workload("Job", template=a_template(container=a_container(command=command.split())))
        yield Case(name=command, review=a_review(other, namespace=enforced), outcome="skipped")
    strange = a_workload("Job", template=a_template(container=a_container(command=["./train", "--batch-size", "4"])))
    yield Case(name="an unknown trainer", review=a_review(strange, namespace=enforced), outcome="unread", says="./train")
    odd = a_workload("PyTorchJob", template=a_template(container=a_container(command=["lm_eval", "--batch_size", "8"])))
    yield Case(name="a training job that evaluates", review=a_review(odd, kind="PyTorchJob"), outcome="unread", says="lm_eval")
    silent = a_workload("PyTorchJob", template=a_template(container=a_container()))
    yield Case(name="a training job without a command", review=a_review(silent, kind="PyTorchJob"), outcome="unread", says=SPEC)
    not_controlled = stating("Job", TOO_LARGE, product=T4, metadata={"ownerReferences": [{**OWNER, "controller": False}]})
    yield Case(
        name="owned, not controlled",
        review=a_review(not_controlled, namespace=enforced),
        outcome="denied",
        verdict="reject",
        says="too few",
    )


def with_new_uids(case: Case) -> Case:
    """The same as another object, so that its prediction is one of its own."""
    review = json.loads(case.body)
    review["request"]["object"]["metadata"]["uid"] = review["request"]["uid"] = str(uuid.uuid4())
    return replace(case, review=review)
