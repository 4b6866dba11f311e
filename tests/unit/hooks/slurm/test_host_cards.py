"""The card of a job on the submit host."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.hooks.slurm.building import an_answer

from peakgate.client.source import Source
from peakgate.hooks.slurm.host_cards import asked_by, host_cards
from peakgate.v1.document import parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

TABLE = """
cards:
  - {type: big, gpu: h100-80gb}
  - {type: small, memory_bytes: 17179869184}
"""


@pytest.mark.parametrize(
    ("options", "want_types", "want_total"),
    [
        ({"gres": "gpu:big:2", "nodes": "3"}, ("big",), 6),
        ({"gpus": "big:4"}, ("big",), 4),
        ({"gpus_per_node": "8", "nodes": "2-4"}, ("",), 16),
        ({"gpus_per_task": "small:1", "ntasks": "4"}, ("small",), 4),
        ({"tres_per_task": "gres/gpu:big=1", "ntasks": "2"}, ("big",), 2),
    ],
)
def test_options_are_what_slurm_makes_of_them(options: dict[str, str], want_types: tuple[str, ...], want_total: int) -> None:
    """Every way of asking, in the fields of a job description."""
    asked = asked_by(options)
    assert asked.types == want_types
    assert asked.gpu_count is not None
    assert asked.gpu_count.count == want_total


def on_cards(tmp_path: Path, options: dict[str, str], table: str = TABLE) -> TrainingJob:
    """A job of an unknown card on those of the table."""
    file = tmp_path / "cards.yaml"
    file.write_text(table)
    job = parse_job({"model": {"preset": "llama-3.1-8b"}, "gpu": {"count": 1}})
    return host_cards(options, file).under(Source(label="job", job=job)).required()


def test_a_type_that_no_catalogue_knows_has_the_tables_memory(tmp_path: Path) -> None:
    """By a name of the catalogue, or in bytes."""
    assert on_cards(tmp_path, {"gpus": "big:2"}).gpu.type == "h100-80gb"
    job = on_cards(tmp_path, {"gres": "gpu:small:1"})
    assert (job.gpu.type, job.gpu.memory_bytes, job.gpu.count) == ("", 17179869184, 1)


def test_without_a_card_the_job_stays_as_it_was_read(tmp_path: Path) -> None:
    """Shares of a card, and types that the table does not know."""
    for options in ({"gres": "shard:2"}, {"gpus": "kraken:1"}):
        assert on_cards(tmp_path, options).gpu.type == ""
    job = parse_job({"model": {"preset": "llama-3.1-8b"}})
    assert host_cards({"gpus": "big:1"}, tmp_path / "none.yaml").under(Source(label="job", job=job)).required() == job


def test_who_may_get_a_card_that_is_too_small_is_told_so(tmp_path: Path) -> None:
    """The largest counts, so that nobody is refused for the other one; with its type stated there is nothing to tell."""
    assert on_cards(tmp_path, {"gpus": "2"}).gpu.type == "h100-80gb"
    untyped, typed = (host_cards({"gpus": request}, tmp_path / "cards.yaml") for request in ("2", "big:2"))
    assert (untyped.ask_for(an_answer(need=60)), untyped.too_small(an_answer(need=60))) == ("big", "small")
    assert (untyped.ask_for(an_answer(need=10)), untyped.too_small(an_answer(need=10))) == ("", "")
    assert (typed.ask_for(an_answer(need=60)), typed.too_small(an_answer(need=60))) == ("", "")
