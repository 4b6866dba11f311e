"""The verdict on a workload of Kueue on the flavors that it was given. No file is opened."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from peakgate.client.connect import Asker, Client
from peakgate.client.errors import AWAY, PeakgateError
from peakgate.hooks.kubernetes.annotations import TRY
from peakgate.hooks.kubernetes.candidates import MOST_CARDS, Cards, concluded
from peakgate.hooks.kubernetes.facts import Facts
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.hooks.kubernetes.kueue.deciding import Judged
from peakgate.hooks.kubernetes.object_job import Unreadable, counted, job_of, on_card
from peakgate.hooks.kubernetes.objects import Object, at, list_at, mapping_at
from peakgate.hooks.kubernetes.requests import is_gpu
from peakgate.hooks.kubernetes.workload_cards import PodSet, together
from peakgate.readers.files import FileError
from peakgate.readers.manifests.pods import Pods, pods_of
from peakgate.readers.settings import read_yaml
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

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
        facts = replace(self._facts(), namespace=str(at(workload, "metadata", "namespace")))
        try:
            told = list(self._podsets(workload, facts))
        except (FileError, RecursionError) as error:
            return Judged(problem=f"the workload cannot be read: {error}")
        cards, podsets = together([each for _, each in told], facts), tuple(name for name, each in told if each.cards.has_gpus)
        if not cards.has_gpus:
            return Judged(has_gpus=False)
        try:
            read = job_of(workload)
        except Unreadable as error:
            return Judged(problem=str(error), podsets=podsets)
        if not cards.candidates or len(cards.candidates) > MOST_CARDS:
            return Judged(problem=cards.doubt or f"it may get more than {MOST_CARDS} kinds of GPU", podsets=podsets)
        try:
            asked = self._asked(workload, counted(read.job, cards), cards)
            return replace(asked, podsets=podsets, is_partial=read.is_partial)
        except PeakgateError as error:
            return Judged(problem=error.message, is_away=error.code in AWAY, podsets=podsets)

    def _podsets(self, workload: Object, facts: Facts) -> Iterator[tuple[str, PodSet]]:
        """Pod sets by name, with the labels of the flavor that was chosen for the GPUs of each."""
        for name, pods in _podsets(workload):
            flavor = flavor_of(workload, name)
            cards = cards_of(pods, replace(facts, flavor=self._flavor(flavor), flavor_name=flavor))
            yield name, PodSet(cards=cards, pods=pods.count)

    def _asked(self, workload: Object, job: TrainingJob, cards: Cards) -> Judged:
        """Every card is asked about; the prediction of the one that counts is stored."""
        jobs = [on_card(job, each) for each in cards.candidates]
        asker = _asker(workload)
        if len(jobs) == 1:
            answer = self._stored(workload, jobs[0], asker)
            return Judged(answer=answer, conclusion=concluded(cards, [answer.verdict]))
        verdicts = [self._client.predict(each, brief=True, validate_only=True).verdict for each in jobs]
        conclusion = concluded(cards, verdicts)
        shown = jobs[cards.place_of(conclusion.shown)]
        return Judged(answer=self._stored(workload, shown, asker), conclusion=conclusion)

    def _stored(self, workload: Object, job: TrainingJob, asker: Asker) -> PredictResponse:
        known = f"{at(workload, 'metadata', 'uid')} {asker.try_reason}".encode() + job.SerializeToString(deterministic=True)
        return self._client.predict(job, asker=asker, request_id=str(uuid.uuid5(_REQUESTS, known.hex())))


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


def _asker(workload: Object) -> Asker:
    """Kueue does not say who sent the job: its namespace stands for them."""
    for podset in list_at(workload, "spec", "podSets"):
        reason = mapping_at(podset, "template", "metadata", "annotations").get(TRY)
        if isinstance(reason, str) and reason.strip():
            return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}", try_reason=" ".join(reason.split())[:200])
    return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}")
