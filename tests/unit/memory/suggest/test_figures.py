"""What plans need that say the same words."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.memory.builders import a_job, plan_of

from peakgate.memory.forms import UntraceableError
from peakgate.memory.pipeline import distinct, stages
from peakgate.memory.suggest import figures, rank_figures
from peakgate.memory.suggest.compiled_rank import compile_rank
from peakgate.memory.suggest.figures import figures_of
from peakgate.memory.suggest.grid import Range, grid, sequences_of
from peakgate.memory.suggest.rank_figures import forget_ranks


def test_many_plans_are_the_parts_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluated a few at a time."""
    plan = plan_of(a_job({"batch.micro_batch_size": 32, "batch.gradient_accumulation_steps": 2}))
    numbers = grid(plan, Range(sequences=sequences_of(plan)))
    whole = figures_of(plan, numbers)
    monkeypatch.setattr(rank_figures, "TOGETHER", 2)
    parts = figures_of(plan, numbers)
    assert len(whole.required) == 6
    for name in ("allocated", "required", "host"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


def test_a_walk_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again for other numbers that go the same way."""
    compiled: list[object] = []

    def counting(*args: object) -> object:
        compiled.append(args)
        return compile_rank(*args)  # type: ignore[arg-type]  # whatever it is called with

    monkeypatch.setattr(rank_figures, "compile_rank", counting)
    monkeypatch.setattr(rank_figures, "MOST_WALKS", 0)  # a few plans would be walked
    forget_ranks()
    for length in (128, 256, 512):
        plan = plan_of(a_job({"batch.micro_batch_size": 8, "batch.sequence_length": length}))
        figures_of(plan, {name: values[:1] for name, values in grid(plan, Range(sequences=sequences_of(plan))).items()})
    assert len(compiled) == 1


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_stages_are_the_pipelines(count: int, schedule: str) -> None:
    """Layers, micro-batches in flight and places of the stages worth walking, as `pipeline.py` has them."""
    job = a_job(
        {
            "framework.name": "megatron",
            "precision.recipe": "megatron-bf16",
            "parallelism.world_size": 8,
            "parallelism.pipeline": count,
            "parallelism.pipeline_schedule": schedule,
            "batch.gradient_accumulation_steps": 16,
            "model.transformer.layers": 24,
        }
    )
    plan = plan_of(job)
    numbers = grid(plan, Range(world=8, sequences=sequences_of(plan)))
    want = [(each.layers, each.in_flight, each.start) for each in distinct(stages(plan.degrees, 24, 16))]
    found = [tuple(int(places[name][0]) for name in ("layers", "in_flight", "start")) for _, places, _ in figures._stages(plan, numbers)]
    assert found == want


def test_what_is_no_polynomial_is_refused() -> None:
    """A method's loss goes sequence by sequence: such plans are predicted one by one."""
    plan = plan_of(a_job({"method.name": "dpo"}))
    with pytest.raises(UntraceableError):
        figures_of(plan, grid(plan, Range(sequences=sequences_of(plan))))
