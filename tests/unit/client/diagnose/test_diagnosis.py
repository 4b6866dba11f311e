"""Published out-of-memory messages with their jobs: stage, category and the tensor that asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.diagnose.judging import diagnosed

from peakgate.client.diagnose.as_dict import as_dict
from peakgate.client.diagnose.stages import BY_NAME

ROWS = [json.loads(line) for line in (Path(__file__).parents[3] / "golden" / "oom_messages.jsonl").read_text().splitlines()]
WITH_JOBS = [row for row in ROWS if row["job"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_published_failure_is_placed(row: dict[str, Any]) -> None:
    """Each gets the stage of its traceback, or else of its tensor, and the ledger's category."""
    found, want = diagnosed(row["text"], row["job"], stage=row.get("stage", "")), row["want"]
    assert (found.stage.name, found.category) == (want["stage"], want["category"])
    assert found.failure is not None
    assert found.failure.steps == want.get("steps")
    assert (found.further.name if found.further else None) == want.get("further")
    assert want.get("tried") in (None, found.failure.message.bytes_of("tried"))


@pytest.mark.parametrize("row", WITH_JOBS, ids=lambda row: row["id"])
def test_the_size_of_a_published_failure_is_a_tensor(row: dict[str, Any]) -> None:
    """What was asked for is a tensor of the job, to the last printed digit where the job's sizes are known to the last."""
    found, want = diagnosed(row["text"], row["job"], stage=row.get("stage", "")), row["want"]
    assert (found.tensors[0].item, found.tensors[0].bytes) == (want["tensor"], want["bytes"])
    assert found.tensors[0].exact is want.get("exact", True)


def test_suggestions_act_on_the_category() -> None:
    """Of a job whose logits do not fit, no suggestion is kept that leaves them alone; those that fit come first."""
    row = next(row for row in ROWS if row["id"] == "nanogpt-88")
    found = diagnosed(row["text"], row["job"])
    assert found.suggestions
    heads = [{path.split(".")[0] for path in each.changes} for each in found.suggestions]
    assert all(fields & {"batch", "loss", "parallelism", "precision", "gpu", "framework"} for fields in heads)
    fits = [each.fits for each in found.suggestions]
    assert fits == sorted(fits, reverse=True)


def test_what_the_user_says_wins() -> None:
    """A stage that is named is not overruled by the traceback."""
    row = next(row for row in ROWS if row["id"] == "parlai-4452")
    found = diagnosed(row["text"], stage="save")
    assert (found.stage.name, found.told_by, found.category) == ("save", "user", "communication")


def test_other_processes_are_named() -> None:
    """A message that lists who holds the card leads to a note about the one that holds most of it."""
    row = next(row for row in ROWS if row["id"] == "llamafactory-1936")
    assert any("62200" in note and "62201" not in note for note in diagnosed(row["text"]).notes)


def test_pieces_are_named() -> None:
    """When PyTorch holds more than was asked for, fragmentation is said."""
    row = next(row for row in ROWS if row["id"] == "megatron-60")
    assert any("expandable_segments" in note for note in diagnosed(row["text"]).notes)


def test_a_failure_in_the_first_step_says_so() -> None:
    """A bar at 0 means that the job never fitted."""
    bar = "  0%|          | 0/600 [00:00<?, ?it/s]\n"
    row = next(row for row in ROWS if row["id"] == "transformers-1819")
    assert any("first step" in note for note in diagnosed(bar + row["text"]).notes)


def test_a_job_that_should_fit_is_told_so() -> None:
    """Where the prediction fits the card of the message, the difference is pointed out."""
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which"
    job = {"model": {"preset": "gpt2"}, "batch": {"micro_batch_size": 1, "sequence_length": 64}}
    found = diagnosed(text, job, stage="forward")
    assert any("should fit" in note for note in found.notes)


def test_json_has_every_part() -> None:
    """The names that programs rely on are there, and all of it is plain JSON."""
    row = next(row for row in ROWS if row["id"] == "nanogpt-88")
    value = json.loads(json.dumps(as_dict(diagnosed(row["text"], row["job"]))))
    assert (value["kind"], value["stage"], value["phase"], value["category"]) == ("allocator", "loss", "loss", "logits")
    assert value["message"]["tried_bytes"] == round(6.14 * 2**30)
    assert value["tensors"][0]["formula"] == "32 x 1,024 x 50,304 x 4 bytes"
    assert value["helps"] == [*BY_NAME["loss"].helps]
    assert value["ledger"]
    assert value["suggestions"]
