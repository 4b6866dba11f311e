"""A read job as text: a document in YAML, places behind its fields, no line beyond 80 columns."""

from __future__ import annotations

import io

import yaml
from rich.console import Console

from peakgate.client.origin import Origin
from peakgate.client.render.document import leaves, print_document
from peakgate.v1.plain import Plain

DOCUMENT: dict[str, Plain] = {
    "model": {"hf_config": {"model_type": "llama", "rope": {"type": "x: y"}}},
    "batch": {"micro_batch_size": 2, "packed": False},
    "lora": {"targets": ["q_proj", "v_proj"]},
    "unread": [f"a feature with a long name {'n' * 40} (train.sh:1)", "[b]"],
    "gpu": {"type": "h100-80gb"},
}
PLACES = {
    "model.hf_config": "model/config.json",
    "batch.micro_batch_size": "train.sh:12 --micro-batch-size",
    "lora.targets": "train.sh:13 --a-flag-with-a-name-that-takes-all-the-room-there-is",
    "gpu.type": "default of \x1b[31m",
}
ORIGIN = Origin(format="toy", places=PLACES, warnings=("one thing (train.sh:1 --one) and another (train.sh:2 --another) contradict " * 2,))


def printed(origin: Origin = ORIGIN) -> str:
    """The text of the document."""
    text = io.StringIO()
    print_document(Console(file=text, width=200, highlight=False), "train.sh", DOCUMENT, origin)
    return text.getvalue()


def test_it_is_the_document() -> None:
    """Whoever saves it has a job document that says the same."""
    assert yaml.safe_load(printed()) == DOCUMENT


def test_places_stand_behind_their_fields() -> None:
    """In one column, or above where there is no room; control characters are spelled out."""
    lines = printed().splitlines()
    assert f"{'  hf_config:':29}# model/config.json" in lines
    assert f"{'  micro_batch_size: 2':29}# train.sh:12 --micro-batch-size" in lines
    assert "  packed: false" in lines
    above = lines.index("  targets: [q_proj, v_proj]")
    assert lines[above - 1].strip() == f"# {PLACES['lora.targets']}"
    assert r"\x1b" in printed()
    assert "\x1b" not in printed()


def test_it_fits_eighty_columns() -> None:
    """But for sentences, which are left whole."""
    assert [line for line in printed().splitlines() if len(line) > 80 and not line.startswith("  - ")] == []
    assert "# warning: one thing (train.sh:1 --one)" in printed()


def test_leaves_are_what_is_no_block() -> None:
    """Lists are leaves."""
    assert list(leaves({"a": {"b": 1, "c": {"d": [1]}}, "e": {}})) == ["a.b", "a.c.d", "e"]
