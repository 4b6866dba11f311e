"""Inverted fields: in a memory model of a few lines, and of real jobs in the real one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.unit.memory.builders import job_of, textbook_13b

from peakgate.calibration import Calibrator
from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job, Lora
from peakgate.memory.prediction import Prediction
from peakgate.server.assess import Assessor
from peakgate.server.errors import PeakgateError
from peakgate.server.fields import all_paths, numeric_paths
from peakgate.server.invert import NOTHING, Solved, largest_micro_batch_size, solve
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy
from peakgate.server.wishes import Wishes

GB = 1_000_000_000
AJob = Callable[..., Job]
MOST_PREDICTIONS = 100

LLAMA = {
    "block": "llama",
    "layers": 16,
    "hidden_size": 2048,
    "heads": 32,
    "kv_heads": 8,
    "ffn_hidden_size": 8192,
    "vocab_size": 128256,
    "tied_embeddings": True,
}


class Counting:
    """The real memory model, with the number of its predictions."""

    def __init__(self) -> None:
        self.predictions = 0
        model = memory_model()
        self._predict = model.predict
        self.assessor = Assessor(memory=replace(model, predict=self.predict), snapshot=Calibrator(epoch="test").snapshot(), policy=Policy())

    def predict(self, job: Job) -> Prediction:
        """The real prediction, counted."""
        self.predictions += 1
        return self._predict(job)

    def fits(self, job: Job, *changes: tuple[str, Value]) -> bool:
        """Whether the changed job fits."""
        return self.assessor.assess(with_changes(job, changes)).fits


@pytest.fixture
def real() -> Counting:
    """A fresh count."""
    return Counting()


def a_sharded_job(**parts: object) -> Job:
    """Llama 3.2 1B under FSDP on eight A100 of 40 GB."""
    document: dict[str, object] = {
        "model": {"transformer": LLAMA},
        "batch": {"micro_batch_size": 4, "sequence_length": 2048},
        "precision": {"recipe": "bf16"},
        "framework": {"name": "torch"},
        "parallelism": {"sharding": "fsdp", "world_size": 8},
        "gpu": {"type": "a100-40gb", "count": 8},
    }
    return job_of(document | parts)


def refusal(job: Job, path: str, assessor: Assessor, wishes: Wishes) -> PeakgateError:
    """The error of a solve."""
    with pytest.raises(PeakgateError) as caught:
        solve(job, path, assessor, wishes)
    return caught.value


def test_the_largest_micro_batch_is_exact(a_job: AJob, assessor: Assessor) -> None:
    """10 GB of states and 10 GB a sequence: seven fit 80 GB, six fit one byte less; none is 0."""
    assert largest_micro_batch_size(a_job(), assessor) == 7
    assert largest_micro_batch_size(a_job(memory_bytes=80 * GB - 1), assessor) == 6
    assert largest_micro_batch_size(a_job(memory_bytes=19 * GB), assessor) == 0


def test_a_micro_batch_that_does_not_decide_is_not_none(a_job: AJob, assessor: Assessor) -> None:
    """Where every one fits, the largest that the service takes for no mistake is named: 0 would say that none does."""
    always = replace(assessor, memory=replace(assessor.memory, predict=lambda _: assessor.memory.predict(a_job())))
    assert largest_micro_batch_size(a_job(), always) == 1 << 20


def test_an_illegal_value_on_the_way_is_skipped(a_job: AJob, assessor: Assessor) -> None:
    """A micro-batch of 13 has no meaning in this model: 14 fits, and 13 is no reason to stop at 12."""
    assert solve(a_job(memory_bytes=150 * GB), "batch.micro_batch_size", assessor) == Solved(14, "largest")


def test_the_smallest_value_is_found_where_more_needs_less(a_job: AJob, assessor: Assessor) -> None:
    """The card that the job needs, to the byte."""
    assert solve(a_job(), "gpu.memory_bytes", assessor) == Solved(20 * GB, "smallest")


def test_none_is_said_when_no_value_fits(a_job: AJob, assessor: Assessor) -> None:
    """No degree of parallelism helps in this model of memory."""
    assert solve(a_job(memory_bytes=9 * GB), "parallelism.tensor", assessor) == NOTHING
    assert solve(a_job(memory_bytes=9 * GB), "batch.sequence_length", assessor) == NOTHING


@pytest.mark.parametrize("path", ["attention.implementation", "batch", "no.such.field", "", "batch.packed"])
def test_what_is_no_number_is_refused(path: str, a_job: AJob, assessor: Assessor) -> None:
    """The error names the argument and a path that would do."""
    error = refusal(a_job(), path, assessor, Wishes())
    assert (error.reason, error.fields[0].field) == ("FIELD_INVALID", "solve")


def test_a_misspelt_path_is_told_the_nearest_ones(a_job: AJob, assessor: Assessor) -> None:
    """The name that was meant."""
    assert "batch.micro_batch_size" in refusal(a_job(), "batch.micro_batch_sise", assessor, Wishes()).message


def test_a_field_that_does_not_decide_is_said(a_job: AJob, assessor: Assessor) -> None:
    """Every sequence length fits in this model of memory."""
    assert refusal(a_job(), "batch.sequence_length", assessor, Wishes()).reason == "SOLVE_UNBOUNDED"


def test_a_kept_field_is_not_solved(a_job: AJob, assessor: Assessor) -> None:
    """The error names both sides; also of a part that holds the field, and of a field that would move along."""
    error = refusal(a_job(), "batch.micro_batch_size", assessor, Wishes(keep=("batch",)))
    assert error.reason == "FIELD_INVALID"
    assert "batch.micro_batch_size" in error.message
    assert "keep: batch holds it" in error.message
    moving = refusal(a_sharded_job(), "gpu.count", assessor, Wishes(keep=("parallelism.world_size",)))
    assert "moves parallelism.world_size with it" in moving.message


def test_a_job_without_a_card_or_a_size_is_not_said_to_fit_nowhere(a_job: AJob, assessor: Assessor) -> None:
    """What is missing is named instead."""
    assert "gpu.type" in refusal(a_job(memory_bytes=None), "parallelism.tensor", assessor, Wishes()).message
    assert "batch.micro_batch_size is not stated" in refusal(a_job(sequences=None), "parallelism.tensor", assessor, Wishes()).message


def test_adapters_are_not_made_up(a_job: AJob, assessor: Assessor) -> None:
    """A rank of adapters would make another job of one that trains all its weights."""
    assert "state lora first" in refusal(a_job(), "lora.rank", assessor, Wishes()).message


@pytest.mark.parametrize(
    ("path", "want_limit"),
    [
        ("batch.sequence_length", "largest"),
        ("model.transformer.layers", "largest"),
        ("model.transformer.hidden_size", "largest"),
        ("checkpointing.layers", "smallest"),
        ("method.generation.memory_fraction", "largest"),
        ("loss.create_graph_factor", "largest"),
        ("gpu.memory_bytes", "smallest"),
    ],
)
def test_one_more_step_does_not_fit(path: str, want_limit: str, real: Counting) -> None:
    """Of whole numbers, of widths that heads divide, and of fractions: what is named fits, and the next value does not."""
    parts: dict[str, object] = {"checkpointing": {"mode": "full"}} if path.startswith("checkpointing") else {}
    generation: dict[str, object] = {}
    if path.startswith("method"):
        engine = {"mode": "colocated", "memory_fraction": 0.1}
        generation = {"method": {"name": "grpo", "generation": engine}, "framework": {"name": "huggingface"}}
    tight = {"batch": {"micro_batch_size": 9, "sequence_length": 2048}} if parts else {}
    job = a_sharded_job(**parts, **generation, **tight)
    solved = solve(job, path, real.assessor)
    assert solved.limit == want_limit
    assert real.predictions <= MOST_PREDICTIONS
    step = {"model.transformer.hidden_size": 32, "method.generation.memory_fraction": 0.01, "loss.create_graph_factor": 0.001}.get(path, 1)
    beyond = solved.value + (step if want_limit == "largest" else -step)
    assert real.fits(job, (path, solved.value))
    assert not real.fits(job, (path, beyond))


def test_the_fewest_gpus_are_stated_under_both_names(real: Counting) -> None:
    """World size and GPU count of a job that states both change together, whichever is asked for, and a full shard degree follows."""
    job = with_changes(a_sharded_job(batch={"micro_batch_size": 1, "sequence_length": 2048}), [("parallelism.shard_degree", 8)])
    smaller = with_changes(job, [("gpu.type", "rtx-3060-12gb")])
    found = {path: solve(smaller, path, real.assessor) for path in ("gpu.count", "parallelism.world_size")}
    fewest = found["gpu.count"]
    assert fewest.limit == "smallest"
    assert 1 < fewest.value < 8
    assert found["parallelism.world_size"] == fewest

    def fits_on(gpus: int) -> bool:
        return real.fits(smaller, ("gpu.count", gpus), ("parallelism.world_size", gpus), ("parallelism.shard_degree", gpus))

    assert fits_on(int(fewest.value))
    assert not fits_on(int(fewest.value) - 1)


def test_a_degree_that_does_not_divide_is_skipped(real: Counting) -> None:
    """Five heads a rank do not exist: of the degrees that divide 32 heads the smallest that fits is named."""
    job = a_sharded_job(parallelism={"world_size": 32, "sharding": "ddp"}, gpu={"type": "l4-24gb", "count": 32})
    solved = solve(job, "parallelism.tensor", real.assessor)
    assert solved.limit == "smallest"
    assert solved.value in (2, 4, 8)
    assert not real.fits(job, ("parallelism.tensor", int(solved.value) // 2))


def test_a_field_that_others_fix_is_named_with_them(real: Counting) -> None:
    """Stated layers a stage leave the number of stages no choice."""
    stages = {"world_size": 2, "pipeline": 2, "stage_layers": [8, 8]}
    job = a_sharded_job(parallelism=stages, gpu={"memory_bytes": GB, "count": 2})
    error = refusal(job, "parallelism.pipeline", real.assessor, Wishes())
    assert {each.field for each in error.fields} == {"solve", "parallelism.stage_layers"}
    assert "parallelism.pipeline is fixed at 2" in error.message


def test_a_value_without_a_choice_is_not_said_to_be_free(real: Counting) -> None:
    """A model that is a preset has no second description: its layers are not a field to solve for."""
    error = refusal(a_sharded_job(model={"preset": "llama-3.2-1b"}), "model.transformer.layers", real.assessor, Wishes())
    assert {each.field for each in error.fields} >= {"solve", "model"}


def test_the_end_of_what_is_legal_is_an_answer(real: Counting) -> None:
    """GPT-2 has 1024 learned positions: the longest sequence that fits is that, and a longer one has no meaning."""
    gpt2 = LLAMA | {"block": "gpt2", "kv_heads": 32, "vocab_size": 50257, "layers": 2, "max_positions": 1000}
    assert solve(a_sharded_job(model={"transformer": gpt2}), "batch.sequence_length", real.assessor) == Solved(1000, "largest")


@pytest.mark.parametrize(
    "path", sorted(path for path in numeric_paths() if not path.startswith(("model.", "method.critic", "method.teacher", "method.reward")))
)
def test_no_field_needs_many_predictions(path: str, real: Counting) -> None:
    """Whatever is asked for, of a job that fits and of one that does not."""
    for job in (textbook_13b(), with_changes(textbook_13b(), [("gpu.type", "h200-141gb")])):
        real.predictions = 0
        with suppress(PeakgateError):  # a field that does not decide
            solve(replace(job, lora=job.lora or Lora(rank=8)), path, real.assessor)
        assert real.predictions <= MOST_PREDICTIONS


def test_paths_are_found_from_the_dataclasses() -> None:
    """A new field needs no list: numbers are told from words, flags and lists, and parts have paths of their own."""
    assert {"batch.micro_batch_size", "lora.rank", "model.transformer.mla.q_lora_rank", "dropout.hidden"} <= set(numeric_paths())
    assert not {"batch.packed", "name", "batch.grid", "attention.implementation"} & set(numeric_paths())
    assert {"parallelism", "parallelism.tensor", "batch.packed", "model.transformer"} <= all_paths()
