"""Fields by path."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job

from peakgate.memory.change import value_at, with_changes
from peakgate.memory.job import Fsdp, Job, Lora, Zero


def test_a_field_is_set_and_everything_else_kept() -> None:
    """The given job is not touched."""
    job = a_job()
    changed = with_changes(job, [("batch.micro_batch_size", 7)])
    assert (changed.batch.micro_batch_size, job.batch.micro_batch_size) == (7, 2)
    assert with_changes(changed, [("batch.micro_batch_size", 2)]) == job


def test_changes_come_one_after_another() -> None:
    """The last of a path wins."""
    job = with_changes(Job(), [("optimizer.name", "sgd"), ("optimizer.in_backward", True), ("optimizer.name", "lion")])
    assert (job.optimizer.name, job.optimizer.in_backward) == ("lion", True)


def test_a_message_that_is_not_there_is_made() -> None:
    """Adapters and the details of a framework are absent until something of them is stated."""
    job = with_changes(Job(), [("lora.rank", 4), ("framework.zero.overlap_comm", True), ("framework.fsdp.version", 2)])
    assert job.lora == Lora(rank=4)
    assert job.framework.zero == Zero(overlap_comm=True)
    assert job.framework.fsdp == Fsdp(version=2)


@pytest.mark.parametrize("path", ["nonsense", "batch.nonsense", "lora.nonsense", "framework.zero.nonsense"])
def test_a_path_that_is_no_field_is_refused(path: str) -> None:
    """Both ways."""
    with pytest.raises(KeyError):
        with_changes(Job(lora=Lora(), framework=with_changes(Job(), [("framework.zero.overlap_comm", True)]).framework), [(path, 1)])
    with pytest.raises(KeyError):
        value_at(with_changes(Job(lora=Lora()), [("framework.zero.overlap_comm", True)]), path)


def test_a_stated_value_is_read() -> None:
    """None for what is not stated, at any depth."""
    job = with_changes(Job(), [("framework.zero.overlap_comm", False)])
    assert value_at(job, "framework.zero.overlap_comm") is False
    assert value_at(job, "framework.ddp.bucket_cap_mb") is None
    assert value_at(job, "lora.rank") is None
    assert value_at(job, "name") == ""
