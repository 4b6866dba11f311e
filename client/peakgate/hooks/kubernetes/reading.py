"""From an object of the API to the job that it starts, with where each field stands. No file is opened.

What a workload names and is not in it (config maps, a training runtime) comes as further objects, from whoever may read the cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from peakgate.client.source import LaunchText, Source
from peakgate.hooks.kubernetes.admission import Admission
from peakgate.hooks.kubernetes.facts import DEVICE_KINDS
from peakgate.hooks.kubernetes.objects import Object, mapping_at
from peakgate.readers.files import FileError, GivenFiles
from peakgate.readers.launch import NOT_READ
from peakgate.readers.manifests.pods import MOST_CONTAINERS, Pods, members, pods_of
from peakgate.readers.manifests.trainjob import RUNTIME_UNKNOWN, pods_of_train_job
from peakgate.readers.not_training import trains
from peakgate.readers.place import Place
from peakgate.readers.read import MOST_LAUNCHES, NO_COMMAND, NOTHING_STARTED, TRAINS_NOTHING, UNKNOWN, UnreadableError, read_manifest
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_yaml
from peakgate.readers.stated import is_broken
from peakgate.v1.document import DocumentError, parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

MODEL_PATHS = ("model.hf_config", "model.profile")
"""Fields that a launch may fill with the path of a file."""

LEFT_OUT = frozenset({"managedFields", "ownerReferences"})
MOST_PROBLEM, MOST_PROGRAM = 300, 60
_HIDDEN = re.compile(r"\$[\w({]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`job`: None where nothing can be judged, for the reason `problem`, or because nothing trains (`is_unknown`), which the names of the
    programs say by themselves (`is_other`). `is_partial`: a part of the launch was not at hand, so that what is not stated may stand
    there, or a branch of a script decides whether it is this launch that runs. `sources`: the place of each field. `devices`: the claims
    that its pods name, with their classes. `further`: other launches of the same container, which run too."""

    source: Source | None = None
    job: TrainingJob | None = None
    pods: Sequence[Pods] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    is_partial: bool = False
    is_unknown: bool = False
    is_other: bool = False
    problem: str = ""
    devices: Sequence[Object] = ()
    further: Sequence[Read] = ()


def read_object(admission: Admission, beside: Sequence[Object] = ()) -> Read:
    """Reads it. Never raises."""
    devices = [each for each in beside if each.get("kind") in DEVICE_KINDS]
    read = _read_object(admission, [each for each in beside if each not in devices])
    return replace(read, devices=devices, further=[replace(each, devices=devices) for each in read.further])


def _read_object(admission: Admission, beside: Sequence[Object]) -> Read:
    label = f"{admission.kind}/{admission.name}"
    try:
        objects = [json.dumps(_bare(each)) for each in (admission.object, *beside)]
        written = "\n---\n".join(objects)
        pods = _pods(read_yaml(written, label))
        if pods and not any(each.count for each in pods):
            return Read(is_unknown=True, is_other=True, problem="it starts no pod: their number is 0")
        files = GivenFiles({label: written})
        reading, *further = read_manifest(written, label, files, MOST_LAUNCHES)
    except UnreadableError as error:
        return _more_than_is_read(pods) or _unread(str(error))
    except (FileError, RecursionError, ValueError) as error:
        return Read(problem=f"the object cannot be read: {str(error)[:MOST_PROBLEM]}")
    more = _more_than_is_read(pods)
    if more is not None and not reading.own:
        return more
    read, *others = (_parsed(_without_lines(each), LaunchText(reading=each, files=files), pods, label) for each in (reading, *further))
    return replace(read, is_partial=read.is_partial or more is not None, further=others)


def _unread(problem: str) -> Read:
    """Of a launch that no reader knows what it runs is enough; which readers there are fills no line of a terminal."""
    others = [each for each in problem.split("; ") if TRAINS_NOTHING not in each and not each.startswith(f"{UNKNOWN}: {NO_COMMAND}")]
    if TRAINS_NOTHING in problem and not others:
        return Read(is_unknown=True, is_other=True, problem=problem[:MOST_PROBLEM])
    if UNKNOWN not in problem and not problem.endswith(NOTHING_STARTED):
        return Read(problem=problem[:MOST_PROBLEM])
    programs = [each.partition(" is none of ")[0] for each in problem.split(f"{UNKNOWN}: ")[1:]]
    named = [each for each in programs if each and each != NO_COMMAND]
    what = f", {named[0][:MOST_PROGRAM]}" if programs[:1] == named[:1] and named else ""
    is_other = bool(named) and not any(trains(PurePosixPath(each).name) for each in named)
    return Read(is_unknown=True, is_other=is_other, problem=f"nothing is known of what it runs{what}")


def _more_than_is_read(pods: Sequence[Pods]) -> Read | None:
    """Of a pod with more containers than are looked at neither the launch nor the GPUs are known, unless the submitter says them."""
    if not any(len(members(each.spec, "containers")) > MOST_CONTAINERS for each in pods):
        return None
    return Read(is_unknown=True, problem=f"a pod has more than {MOST_CONTAINERS} containers, which are too many to be read")


def _bare(whole: Object) -> Object:
    """The object without what the API server adds."""
    metadata = {key: value for key, value in mapping_at(whole, "metadata").items() if key not in LEFT_OUT}
    return {key: value for key, value in whole.items() if key != "status"} | {"metadata": metadata}


def _pods(documents: Sequence[Settings]) -> list[Pods]:
    kind = documents[0]("kind")
    return pods_of_train_job(documents[0], documents, Reading()) if kind is not None and kind.text == "TrainJob" else pods_of(documents[0])


def _without_lines(reading: Reading) -> Reading:
    """The lines are those of a text that nobody has seen."""
    for path, stated in reading.fields.items():
        reading.fields[path] = replace(stated, place=_plain(stated.place))
    return reading


def _plain(place: Place) -> Place:
    return replace(place, line=0)


def _parsed(reading: Reading, launch: LaunchText, pods: Sequence[Pods], label: str) -> Read:
    sources = {path: str(stated.place) for path, stated in reading.fields.items()}
    is_partial = reading.may_not_run or any(each.endswith((NOT_READ, RUNTIME_UNKNOWN)) for each in reading.warnings)
    document = reading.document()
    found = Read(pods=pods, sources=sources, is_partial=is_partial)
    if broken := next(filter(is_broken, reading.warnings), ""):
        return replace(found, problem=broken[:MOST_PROBLEM])
    for path in MODEL_PATHS:
        if isinstance(document.get(path), str):
            return replace(found, problem=f"{path} names a file, which is not read here ({sources[path]}): state its content")
    if _HIDDEN.match(named := str(document.get("model.preset", ""))):
        return replace(found, problem=f"the model is {named[:MOST_PROGRAM]}, whose value is not known here ({sources['model.preset']})")
    try:
        job = parse_job(document)
    except DocumentError as error:
        missing = next((each for each in reading.warnings if each.endswith(NOT_READ)), "") if not reading.own else ""
        return replace(found, problem=(missing or f"what it states is no job: {error}")[:MOST_PROBLEM])
    return replace(found, job=job, source=Source(label=label, job=job, launch=launch))
