"""The verdict on a workload of Kueue on the flavors that it was given. No file is opened."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from peakgate.client.connect import Asker, Client
from peakgate.client.errors import PeakgateError
from peakgate.hooks.kubernetes.candidates import Candidate, Cards, concluded
from peakgate.hooks.kubernetes.facts import Facts, Object, at, list_at, mapping_at
from peakgate.hooks.kubernetes.gpus import cards_of
from peakgate.hooks.kubernetes.kueue.deciding import Judged
from peakgate.hooks.kubernetes.requests import is_gpu
from peakgate.readers.files import FileError, GivenFiles
from peakgate.readers.manifests.pods import Pods, pods_of
from peakgate.readers.read import UnreadableError, read_file
from peakgate.readers.settings import read_yaml
from peakgate.v1.document import DocumentError, parse_job
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS"})
"""gRPC codes of a service that is not there for this call; with any other one it speaks of the job."""

MODEL_PATHS = ("model.hf_config", "model.profile")
TRY = "peakgate.io/try"
MOST_CARDS = 8
_REQUESTS = uuid.UUID("6f1a3a0e-9d0c-5e0b-8f6e-6b1d8c1f7a55")
"""Of requests about workloads: the same workload with the same flavors is the same request, so that its prediction is stored once."""


class Unreadable(Exception):  # noqa: N818 - what it is, not an error of anybody
    """A workload that does not say what it trains, in words."""


class Judge:
    """Asks the service about workloads. `facts`: what is known of the cluster now; `flavors`: labels of each flavor by its name."""

    def __init__(self, client: Client, *, facts: Callable[[], Facts], flavors: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._client = client
        self._facts = facts
        self._flavors = flavors

    def judge(self, workload: Object) -> Judged:
        """What comes of it. Never raises for what the workload holds."""
        try:
            told = [(name, cards) for name, cards in self._cards(workload) if cards.has_gpus]
        except (FileError, RecursionError) as error:
            return Judged(problem=f"the workload cannot be read: {error}")
        if not told:
            return Judged(has_gpus=False)
        cards, podsets = _together([each for _, each in told]), tuple(name for name, _ in told)
        try:
            job = job_of(workload)
        except Unreadable as error:
            return Judged(problem=str(error), podsets=podsets)
        if not cards.candidates or len(cards.candidates) > MOST_CARDS:
            return Judged(problem=cards.doubt or f"it may get more than {MOST_CARDS} kinds of GPU", podsets=podsets)
        try:
            return replace(self._asked(workload, job, cards), podsets=podsets)
        except PeakgateError as error:
            return Judged(problem=error.message, is_away=error.code in AWAY, podsets=podsets)

    def _cards(self, workload: Object) -> Iterator[tuple[str, Cards]]:
        """(pod set, what its pods get) with the labels of the flavor that was chosen for its GPUs."""
        facts, flavors = replace(self._facts(), namespace=str(at(workload, "metadata", "namespace"))), self._flavors()
        for name, pods in _podsets(workload):
            flavor = flavor_of(workload, name)
            yield name, cards_of(pods, replace(facts, flavor=flavors.get(flavor, {}), flavor_name=flavor))

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


def job_of(workload: Object) -> TrainingJob:
    """The job that a workload's templates say, by the readers. Raises Unreadable."""
    text = json.dumps(_bare(workload), indent=1)
    try:
        reading = read_file("workload", GivenFiles({"workload": text}))
    except (UnreadableError, RecursionError, ValueError) as error:
        raise Unreadable(f"{str(error)[:300]}; state the job in the annotation peakgate.io/spec") from error
    document = reading.document()
    for path in MODEL_PATHS:
        if isinstance(document.get(path), str):
            raise Unreadable(f"{path} names a file, which is not read here: state its content in the annotation peakgate.io/spec")
    try:
        return parse_job(document)
    except DocumentError as error:
        raise Unreadable(f"what it states is no job: {str(error)[:300]}") from error


def on_card(job: TrainingJob, card: Candidate) -> TrainingJob:
    """The job on a card; stated bytes win over a name, as they do in the document."""
    fitted = TrainingJob()
    fitted.CopyFrom(job)
    fitted.gpu.ClearField("type")
    fitted.gpu.ClearField("memory_bytes")
    if card.gpu:
        fitted.gpu.type = card.gpu
    if card.memory_bytes:
        fitted.gpu.memory_bytes = card.memory_bytes
    return fitted


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


def _bare(workload: Object) -> dict[str, object]:
    metadata = {key: value for key, value in mapping_at(workload, "metadata").items() if key not in ("managedFields", "ownerReferences")}
    return {key: value for key, value in workload.items() if key != "status"} | {"metadata": metadata}


def _asker(workload: Object) -> Asker:
    """Kueue does not say who sent the job: its namespace stands for them."""
    for podset in list_at(workload, "spec", "podSets"):
        reason = mapping_at(podset, "template", "metadata", "annotations").get(TRY)
        if isinstance(reason, str) and reason.strip():
            return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}", try_reason=" ".join(reason.split())[:200])
    return Asker(user=f"namespace/{at(workload, 'metadata', 'namespace')}")
