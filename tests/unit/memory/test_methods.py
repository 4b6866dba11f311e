"""Training methods with more than one model, batch or loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, number, rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, item_bytes, job_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Generation, Job, Lora, Model
from peakgate.memory.methods.engine import DEFAULT_FRACTION
from peakgate.memory.methods.rows import METHODS
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.suggest.plans import plans_of
from peakgate.memory.suggest.wanted import Wanted

TRACED = rows("traced_methods")
NEAR = 1e-3
GB = 1_000_000_000


def with_models(job: Job, *, critic: Model | None = None, reward: Model | None = None, teacher: Model | None = None) -> Job:
    """The job with a critic, a reward model or a teacher."""
    return replace(job, method=replace(job.method, critic=critic, reward=reward, teacher=teacher))


@pytest.mark.parametrize("row", TRACED, ids=[f"{index}-{row['architecture']}" for index, row in enumerate(TRACED)])
def test_a_traced_method_has_its_peak(row: Json) -> None:
    """Live bytes at the peak of TRL's own loss, the other models included, and the phase where it stands."""
    answer = predict(job_of(row["job"]))
    assert answer.live_bytes == pytest.approx(number(row, "peak_live_bytes"), rel=NEAR)
    assert answer.parameters == number(row, "parameters")
    assert answer.peak_phase == row["peak_phase"]
    assert not [reason for reason in answer.undecided if "generation" not in reason]


def test_a_reference_model_is_a_line_of_its_own() -> None:
    """A second copy of the weights; under adapters the base is the reference, and nothing is added."""
    whole, none = (predict(a_job({"method.name": "dpo", "method.reference": kind})) for kind in ("full", "none"))
    weights = item_bytes(whole, "weights")
    assert 0 <= item_bytes(whole, "reference model: weights") - weights < 1024  # beside the weights the table of frequencies
    assert whole.allocated_bytes >= none.allocated_bytes + weights
    adapted = predict(a_job({"method.name": "dpo"}, lora=Lora()))
    assert not item_bytes(adapted, "reference model: weights")
    assert any(each.startswith("method.reference: adapter") for each in adapted.assumptions)


@pytest.mark.parametrize(("method", "want"), [("sft", 2), ("dpo", 4), ("orpo", 4), ("reward", 4), ("kto", 2), ("grpo", 2), ("distill", 2)])
def test_a_method_has_its_batch(method: str, want: int) -> None:
    """Chosen and rejected answers are one batch of twice as many sequences."""
    assert a_plan({"method.name": method}).micro_batch == want


def test_stated_sequences_an_example_win() -> None:
    """Also of a method that has one by itself."""
    assert a_plan({"method.name": "grpo", "method.sequences_per_example": 8}).micro_batch == 16
    assert a_plan({"method.sequences_per_example": 3}).micro_batch == 6


def test_a_reward_model_ends_in_one_number() -> None:
    """No vocabulary behind the layers: fewer parameters, and no logits worth naming."""
    score, language = (predict(a_job({"method.name": name})) for name in ("reward", "sft"))
    assert language.parameters - score.parameters == 64 * (250 - 1)
    assert score.peak_phase != "loss"


def test_a_trainer_that_disables_dropout_is_believed() -> None:
    """DPO turns the config's dropout off; a job that states it has it."""
    dropped: dict[str, Value] = {"method.name": "dpo"}
    model = a_transformer("gpt")
    assert a_plan(dropped, model=model).dropout_hidden == 0.0
    assert a_plan({}, model=model).dropout_hidden == 0.1
    assert a_plan(dropped | {"dropout.hidden": 0.2}, model=model).dropout_hidden == 0.2


def test_a_shorter_answer_needs_less() -> None:
    """GRPO computes logits of the answer alone."""
    changes: dict[str, Value] = {"method.name": "grpo"}
    sizes = [predict(a_job(changes | {"batch.target_length": tokens})).allocated_bytes for tokens in (4, 16, 32)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert sizes[-1] == predict(a_job(changes)).allocated_bytes


def test_every_model_of_ppo_is_resident() -> None:
    """A critic with gradients and states, a frozen reward model and a reference; what is left open is said."""
    job = with_models(a_job({"method.name": "ppo"}), critic=Model(transformer=a_transformer()), reward=Model(transformer=a_transformer()))
    answer = predict(job)
    names = ("reference model: weights", "critic model: weights", "critic model: optimizer states", "reward model: weights")
    assert all(item_bytes(answer, name) > 0 for name in names)
    assert any("rollouts" in reason for reason in answer.undecided)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"method.name": "distill"}, "method.teacher"),
        ({"method.name": "grpo"}, "method.generation"),
        ({"method.name": "dpo", "framework.name": "torchtune"}, "method.name"),
        ({"method.name": "dpo", "parallelism.tensor": 2}, "method.name"),
    ],
)
def test_what_a_method_leaves_open_is_undecided(changes: dict[str, Value], want: str) -> None:
    """The field that decides is named."""
    assert any(reason.startswith(want) for reason in predict(a_job(changes)).undecided)


def test_a_model_of_a_bare_count_is_undecided() -> None:
    """Never dropped in silence."""
    job = with_models(a_job({"method.name": "distill"}), teacher=Model(parameters=10**9))
    assert any(reason.startswith("method.teacher") for reason in predict(job).undecided)


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"])
@pytest.mark.parametrize("method", ["dpo", "kto", "distill"])
def test_a_second_model_is_sharded_as_the_first(method: str, sharding: str) -> None:
    """Whole under DDP, ZeRO-1 and ZeRO-2 (TRL models/utils.py: prepare_deepspeed), a shard under the others."""
    job = a_job({"method.name": method, "parallelism.world_size": 4, "parallelism.sharding": sharding})
    answer = predict(with_models(job, teacher=Model(transformer=a_transformer())) if method == "distill" else job)
    item = "teacher model: weights" if method == "distill" else "reference model: weights"
    alone = predict(with_models(a_job({"method.name": method}), teacher=Model(transformer=a_transformer())))
    whole = item_bytes(alone, item)
    assert item_bytes(answer, item) <= whole if sharding in ("ddp", "zero1", "zero2") else item_bytes(answer, item) < whole / 2
    assert sum(each.bytes for each in answer.ledger) == answer.device_bytes


def test_an_engine_takes_its_share_of_the_card() -> None:
    """Beside the step, or, when it sleeps, in a phase of its own."""
    base = a_job({"method.name": "grpo", "gpu.memory_bytes": 80 * GB})

    def generating(**fields: bool | float) -> Prediction:
        generation = Generation(**{"colocated": True, "memory_fraction": 0.4, **fields})  # type: ignore[arg-type]  # fields of Generation
        return predict(replace(base, method=replace(base.method, generation=generation)))

    awake, asleep = generating(sleep=False), generating(sleep=True)
    step = predict(replace(base, method=replace(base.method, generation=Generation(mode="none"))))
    assert awake.allocated_bytes == step.allocated_bytes + 32 * GB
    assert step.allocated_bytes < asleep.allocated_bytes < awake.allocated_bytes
    assert asleep.peak_phase == "evaluate"
    assert not step.undecided
    assert DEFAULT_FRACTION < 0.4


def test_an_engine_needs_a_card() -> None:
    """A share of a card that nobody names is not a number of bytes."""
    job = a_job({"method.name": "grpo"})
    answer = predict(replace(job, method=replace(job.method, generation=Generation(mode="colocated"))))
    assert any(reason.startswith("method.generation.memory_fraction") for reason in answer.undecided)


@pytest.mark.parametrize("method", ["dpo", "kto", "grpo", "orpo", "distill"])
def test_a_loss_without_logits_needs_less(method: str) -> None:
    """Tiles of a long vocabulary instead of all logits; where no trainer of the method has it the answer says so."""
    model = a_transformer(vocab_size=200_000)
    job = with_models(a_job({"method.name": method, "batch.sequence_length": 2048}, model=model), teacher=Model(transformer=model))
    full, tiled = (predict(with_changes(job, [("loss.implementation", kind)])) for kind in ("full", "fused"))
    assert tiled.allocated_bytes < full.allocated_bytes
    assert any(reason.startswith("loss") for reason in tiled.undecided) == (method in ("orpo", "distill"))


def test_a_fix_halves_the_stated_micro_batch() -> None:
    """Not the number of sequences that the method makes of it."""
    job = a_job({"method.name": "dpo"})
    needed = predict(job).required_bytes
    plans = plans_of(job, lambda _: needed - 1, Wanted())
    assert ("batch.micro_batch_size", 1) in [change for plan in plans.suggestions for change in plan.changes]


def test_every_method_is_a_word_of_the_document() -> None:
    """One table of words, one row each."""
    from peakgate.memory.choices import CHOICES

    assert set(METHODS) == set(CHOICES["method.name"])
