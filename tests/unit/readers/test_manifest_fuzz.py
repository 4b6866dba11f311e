"""Whatever stands in a manifest: a clear error or launches, in little time, and no other exception."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.limits import SECONDS
from tests.unit.readers.manifest import a_job
from tests.unit.readers.test_manifest_kinds import KINDS, POD, RUNTIME, TRAIN_JOB, object_of

from peakgate.readers.files import FolderFiles, GivenFiles
from peakgate.readers.read import UnreadableError, read_file

MANIFESTS = [
    a_job(),
    TRAIN_JOB + RUNTIME,
    *(
        object_of(kind, spec.replace("{POD}", f"{{{POD}}}").replace("{WORKER}", "{}").replace("{LAUNCHER}", "{}"))
        for kind, (spec, _) in KINDS.items()
    ),
]
WORDS = st.sampled_from(
    ["", "null", "-1", "1e99", "[]", "{}", "[[]]", "{a: {b: c}}", "nvidia.com/gpu", "$(A)", "'$(A)$(A)'", "~", "\u2028", "9" * 40]
)


def tried(text: str) -> None:
    """Reads a manifest as a file is read."""
    begin = time.process_time()
    with suppress(UnreadableError):
        reading = read_file("job.yaml", GivenFiles({"job.yaml": text}))
        assert all(str(stated.place) for stated in reading.fields.values())
    assert time.process_time() - begin < SECONDS


@given(text=st.sampled_from(MANIFESTS), data=st.data())
def test_a_spoiled_manifest_is_read_or_refused(text: str, data: st.DataObject) -> None:
    """Words of it are replaced by what does not belong there."""
    parts = text.split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        parts[data.draw(st.integers(0, len(parts) - 1))] = data.draw(WORDS)
    tried(" ".join(parts))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    [
        "spec",
        "template",
        "containers",
        "env",
        "envFrom",
        "command",
        "args",
        "resources",
        "limits",
        "replicas",
        "parallelism",
        "metadata",
        "nodeSelector",
    ]
)
TREES = st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner | st.lists(inner, max_size=3), max_size=5), max_leaves=30)


@given(spec=TREES, kind=st.sampled_from(["Job", "TrainJob", "RayJob", "Pod", "List", "ConfigMap"]))
def test_anything_under_a_kind_is_read_or_refused(spec: object, kind: str) -> None:
    """Keys that are known in places where they are not."""
    tried(
        json.dumps(
            {"apiVersion": "v1", "kind": kind, "spec": spec, "items": [spec], "metadata": {"annotations": {"peakgate.io/spec": str(spec)}}}
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        a_job(container="command: [python, train.py]\n          env: [" + "{name: A, value: $(A)}, " * 4_000 + "]"),
        a_job(spec="x: " + "[" * 500 + "]" * 500),
        a_job(container="command: [bash, -c, '" + "a; " * 15_000 + "']"),
        a_job(container="command: [python, " + "'--flag', " * 15_000 + "]"),
        "apiVersion: v1\nkind: Pod\nspec: {containers: ["
        + "{name: a, command: [python, train.py], resources: {limits: {nvidia.com/gpu: 1}}}, " * 3000
        + "]}",
        "apiVersion: v1\nkind: List\nitems: [" + "{apiVersion: v1, kind: Pod, spec: {containers: [{command: [a]}]}}, " * 2000 + "]",
        "apiVersion: v1\nkind: Pod\n" + "a: &a [x]\n" + "".join(f"b{n}: &b{n} [{'*a, ' * 9}]\n" for n in range(20)),
        "---\n".join(["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {A: $(A)}\n"] * 3000),
    ],
    ids=["variables", "deep", "a long script", "many words", "containers", "a long list", "aliases", "documents"],
)
def test_a_huge_manifest_takes_no_time(text: str) -> None:
    """Read or refused within a second."""
    tried(text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """With a clear word."""
    (tmp_path / "job.yaml").write_bytes(b"apiVersion: v1\nkind: Pod\nspec: \xff\xfe\n")
    with pytest.raises(UnreadableError, match="no text in UTF-8"):
        read_file("job.yaml", FolderFiles(tmp_path))
