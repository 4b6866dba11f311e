"""The verdict on a workload of Kueue on the flavors that it was given. No file is opened."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from peakgate.client.connect import Asker, Client
from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.candidates import Cards, concluded
from peakgate.hooks.kubernetes.facts import Facts, Object, at, list_at, mapping_at
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.hooks.kubernetes.kueue.deciding import Judged
from peakgate.hooks.kubernetes.object_job import Unreadable, job_of, on_card
from peakgate.hooks.kubernetes.requests import is_gpu
from peakgate.readers.files import FileError
from peakgate.readers.manifests.pods import Pods, pods_of
from peakgate.readers.settings import read_yaml
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"})
"""gRPC codes of a service that is not there for this call; with any other one it speaks of the job."""

TRY = "peakgate.io/try"
MOST_CARDS = 8
_REQUESTS = uuid.UUID("6f1a3a0e-9d0c-5e0b-8f6e-6b1d8c1f7a55")
"""Of requests about workloads: the same workload with the same flavors is the same request, so that its prediction is stored once."""


class Judge:
    """Asks the service about workloads. `facts`: what is known of the cluster now; `flavor`: the labels of a flavor by its name."""

    def __init__(self, client: Client, *, facts: Callable[[], Facts], flavor: Callable[[str], Mapping[str, str]]) -> None:
        self._client = client
        self._facts = facts
        self._flavor = flavor

    def judge(self, workload: Object) -> Judged:
        """What comes of it. Never raises for what the workload holds."""
        try:
            told = [each for each in self._cards(workload) if each[1].has_gpus]
        except (FileError, RecursionError) as error:
            return Judged(problem=f"the workload cannot be read: {error}")
        if not told:
            return Judged(has_gpus=False)
        cards, podsets = _together([each for _, each, _ in told]), tuple(name for name, *_ in told)
        try:
            read = job_of(workload)
        except Unreadable as error:
            return Judged(problem=str(error), podsets=podsets)
        if not cards.candidates or len(cards.candidates) > MOST_CARDS:
            return Judged(problem=cards.doubt or f"it may get more than {MOST_CARDS} kinds of GPU", podsets=podsets)
        try:
            job = _counted(read.job, [(each, pods) for _, each, pods in told])
            return replace(self._asked(workload, job, cards), podsets=podsets, is_partial=read.is_partial)
        except PeakgateError as error:
            return Judged(problem=error.message, is_away=error.code in AWAY, podsets=podsets)

    def _cards(self, workload: Object) -> Iterator[tuple[str, Cards, int]]:
        """(pod set, what each of its pods gets, how many there are) with the labels of the flavor that was chosen for its GPUs."""
        facts = replace(self._facts(), namespace=str(at(workload, "metadata", "namespace")))
        for name, pods in _podsets(workload):
            flavor = flavor_of(workload, name)
            yield name, cards_of(pods, replace(facts, flavor=self._flavor(flavor), flavor_name=flavor)), pods.count

    def _asked(self, workload: Object, job: TrainingJob, cards: Cards) -> Judged:
        """Every card is asked about; the prediction of the one that counts is stored."""
        jobs = [on_card(job, each) for each in cards.candidates]
        asker = _asker(workload)
        if len(jobs) == 1:
            answer = self._stored(workload, jobs[0], asker)
            return Judged(answer=answer, conclusion=concluded(cards, [answer.verdict]))
        verdicts = [self._client.predict(each, brief=True, validate_only=True).verdict for each in jobs]
        conclusion = concluded(cards, verdicts)
        place = next((place for place, each in enumerate(cards.candidates) if each is conclusion.shown), 0)
        return Judged(answer=self._stored(workload, jobs[place], asker), conclusion=conclusion)

    def _stored(self, workload: Object, job: TrainingJob, asker: Asker) -> PredictResponse:
        known = f"{at(workload, 'metadata', 'uid')} {asker.try_reason}".encode() + job.SerializeToString(deterministic=True)
        return self._client.predict(job, asker=asker, request_id=str(uuid.uuid5(_REQUESTS, known.hex())))


def _counted(job: TrainingJob, told: Sequence[tuple[Cards, int]]) -> TrainingJob:
    """The job with its number of GPUs, where the readers see none because claims of devices or shares give them."""
    counts = [(cards.candidates[0].count, pods) for cards, pods in told if cards.candidates]
    if not job.gpu.count and counts:
        job.gpu.count = sum(each * pods for each, pods in counts)
        job.node.gpus = job.node.gpus or max(each for each, _ in counts)
    return job


def flavor_of(workload: Object, podset: str) -> str:
    """The flavor that Kueue chose for the GPUs of a pod set; of claims, whose resource has a name of the cluster's own, the only one."""
    assignments = list_at(workload, "status", "admission", "podSetAssignments")
    found = next((mapping_at(each, "flavors") for each in assignments if at(each, "name") == podset), {})
    for resource, flavor in found.items():
        if is_gpu(resource):
            return str(flavor)
    names = {str(each) for each in found.values()}
    return names.pop() if len(names) == 1 else ""


def _podsets(workload: Object) -> Iterator[tuple[str, Pods]]:
    for podset in list_at(workload, "spec", "podSets"):
        template = {"spec": {"podSets": [podset]}}
        for pods in pods_of(read_yaml(json.dumps(template), "workload")[0]):
            yield str(at(podset, "name") or "main"), pods


def _together(several: list[Cards]) -> Cards:
    """Pods of one job on different cards: refused only when it fits on none of them."""
    candidates = tuple(dict.fromkeys(each for cards in several for each in cards.candidates))
    doubt = next((each.doubt for each in several if each.doubt), "")
    return Cards(candidates=candidates, is_complete=all(each.is_complete and not each.doubt for each in several), doubt=doubt)


def _asker(workload: Object) -> Asker:
    """Kueue does not say who sent the job: its namespace stands for them."""
    for podset in list_at(workload, "spec", "podSets"):
        reason = mapping_at(podset, "template", "metadata", "annotations").get(TRY)
        if isinstance(reason, str) and reason.strip():
            return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}", try_reason=" ".join(reason.split())[:200])
    return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}")
