"""From a manifest to the launches of its containers, with what the manifest says of GPUs and nodes around each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from peakgate.readers.files import FileError, Files, LayeredFiles
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.peel import launches_of
from peakgate.readers.manifests.cards import state_card
from peakgate.readers.manifests.commands import Text, words_at
from peakgate.readers.manifests.mounted import Maps, UnmountedFiles, is_unseen, maps_of, mounted, unvalued, variables
from peakgate.readers.manifests.operators import operator_variables
from peakgate.readers.manifests.own_words import state_own_words
from peakgate.readers.manifests.pods import Pods, members, pods_of
from peakgate.readers.manifests.resources import Asked, asked_of, memory_of, warn_of_fractions, warn_once
from peakgate.readers.manifests.trainjob import pods_of_train_job
from peakgate.readers.place import MANIFEST, VARIABLE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_yaml

LISTED = ("ConfigMap", "TrainingRuntime", "ClusterTrainingRuntime")
"""Kinds that other documents of the file refer to."""


LARGEST = 1 << 19
"""Characters of a file: an object takes at most 1.5 MiB in etcd, its annotations 256 KiB, and one that trains some kilobytes."""

MOST_OBJECTS = 200


@dataclass(slots=True)
class Workload:
    """One document that runs pods, with all that its launches share."""

    settings: Settings
    pods: list[Pods]
    around: Reading
    own: Reading = field(default_factory=Reading)
    asked: dict[int, list[Asked]] = field(default_factory=dict)
    """Of each of the pods by its place: what each container asks for."""


def is_manifest(text: str) -> bool:
    """Whether a file holds objects of Kubernetes: apiVersion and kind are keys of one."""
    return all(
        re.search(rf"""^[ \t{{,]*["']?{key}["']?[ \t]*:""", text, re.MULTILINE) or f'"{key}":' in text for key in ("apiVersion", "kind")
    )


def launches_of_manifest(text: str, path: str, files: Files) -> Iterator[Launch]:
    """The launches of every workload in a file, those of containers with GPUs first. Raises FileError."""
    if len(text) > LARGEST:
        raise FileError(f"is larger than {LARGEST >> 10} KiB, which no manifest is")
    documents = [each for document in read_yaml(text, path) for each in _members(document)][:MOST_OBJECTS]
    maps, lines = maps_of(documents), Text(text.splitlines())
    for document in documents:
        kind = document("kind")
        if kind is not None and kind.text not in LISTED:
            yield from _launches(_workload(document, documents), kind.text, maps, lines, files)


def _members(document: Settings) -> list[Settings]:
    """The objects of a List, or the object itself."""
    found = [each for each in members(document, "items") if each.has("apiVersion")]
    return found[:MOST_OBJECTS] or [document]


def _workload(document: Settings, documents: Sequence[Settings]) -> Workload:
    reading, kind = Reading(), document("kind")
    train_job = kind is not None and kind.text == "TrainJob"
    pods = pods_of_train_job(document, documents, reading) if train_job else pods_of(document)
    workload = Workload(settings=document, pods=pods, around=reading)
    for place, each in enumerate(pods):
        workload.asked[place] = [asked_of(container, reading) for container in each.containers()]
        warn_of_fractions(each.metadata, reading)
        if each.spec.has("resourceClaims"):
            warn_once(reading, "resourceClaims: GPUs that a claim gives are not counted")
    warn_of_fractions(document.under("metadata"), reading)
    _state_gpus(workload)
    _state_specs(workload)
    return workload


def _state_gpus(workload: Workload) -> None:
    """GPUs in all, of a pod and their card; main memory of a pod."""
    reading, total, most, place = workload.around, 0, 0, Place(kind=MANIFEST)
    for number, pods in enumerate(workload.pods):
        gpus = sum(each.gpus for each in workload.asked[number])
        if not gpus or not pods.count:
            continue
        asked = next(each for each in workload.asked[number] if each.gpus)
        count = pods.count if pods.together else 1
        if not pods.together and pods.count > 1:
            warn_once(
                reading, f"the {pods.count} pods are runs of their own (a Job without an index): one of them is counted ({asked.place})"
            )
        if not total:
            _state_card(pods, asked, reading)
            _state_memory(pods, workload.asked[number], reading)
        elif gpus != most:
            warn_once(reading, f"pods with {most} ({place}) and {gpus} GPUs ({asked.place}): the most of one pod is taken for node.gpus")
        if gpus > most:
            most, place = gpus, asked.place
        total += gpus * count
    if total:
        pods_in_all = f" × {total // most} pods" if total > most else ""
        reading.state("gpu.count", total, replace(place, key=f"{place.key}{pods_in_all}"))
        reading.state("node.gpus", most, place)


def _state_card(pods: Pods, asked: Asked, reading: Reading) -> None:
    state_card(pods.spec, reading)
    if not asked.profile:
        return
    card = reading.fields.get("gpu.type")
    if card is None:
        reading.warnings.append(f"gpu.type: a slice {asked.profile} of a card that is not named ({asked.place})")
    elif "/" not in card.text:
        reading.fields["gpu.type"] = Stated(f"{card.text}/{asked.profile}", card.place)


def _state_memory(pods: Pods, asked: Sequence[Asked], reading: Reading) -> None:
    for container, each in zip(pods.containers(), asked, strict=True):
        memory = memory_of(container) if each.gpus else None
        if memory is not None:
            reading.take("node.host_memory_bytes", memory)
            return


def _state_specs(workload: Workload) -> None:
    """The submitter's own words, on the workload or nearer, on its pods."""
    metadata = [workload.settings.under("metadata"), *(each.metadata for each in workload.pods)]
    state_own_words(metadata, workload.pods, workload.own)
    workload.around.warnings += workload.own.warnings


def _launches(workload: Workload, kind: str, maps: Maps, lines: Text, files: Files) -> Iterator[Launch]:
    started = 0
    for rank in (True, False):  # what asks for GPUs, then what may start it: a launcher, a head
        for number, pods in enumerate(workload.pods):
            for container, asked in zip(pods.containers(), workload.asked[number], strict=True):
                if bool(asked.gpus) is rank and pods.count:
                    started += 1
                    for launch in _of_container(workload, kind, pods, container, maps, lines, files):
                        launch.container = started
                        yield launch
    entrypoint = workload.settings("spec.entrypoint")
    if entrypoint is not None:  # a RayJob: a text for a shell
        items = [Stated(["bash", "-c", entrypoint.text], entrypoint.place)]
        whole = Launch(words=words_at(items, {}, lines), around=workload.around, own=workload.own, files=files, imaged=True)
        yield from (replace(launch, container=started + 1) for launch in launches_of(whole))
    yield Launch(around=workload.around, own=workload.own, files=files)  # the submitter's own word may be enough


def _of_container(
    workload: Workload, kind: str, pods: Pods, container: Settings, maps: Maps, lines: Text, files: Files
) -> Iterator[Launch]:
    items = [stated for key in ("command", "args") if (stated := container(key)) is not None]
    if not items:
        return
    stated_here = {name: replace(stated, place=_variable(name, stated.place)) for name, stated in variables(container, maps).items()}
    known = operator_variables(kind, workload.settings, workload.pods, pods) | stated_here
    words = words_at(items, {name: stated.text for name, stated in known.items()}, lines)
    unmounted = UnmountedFiles(maps, workload.around)
    seen = LayeredFiles((mounted(pods.spec, container, maps), unmounted, files))
    whole = Launch(words=words, environment=Settings(known), around=workload.around, own=workload.own, files=seen)
    for launch in launches_of(replace(whole, unseen=is_unseen(container, maps), unvalued=unvalued(container, known), imaged=True)):
        unmounted.reading = launch.around  # what its reader opens
        yield launch


def _variable(name: str, place: Place) -> Place:
    return replace(place, kind=VARIABLE, key=name)
