"""CLIP: a tower of pictures beside a tower of text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, job_of

from peakgate.memory.job import Job, Model
from peakgate.memory.predict import predict

ROWS = rows("traced_clip")
BASE = {"model_type": "clip"}


def clip(**config: object) -> Job:
    """openai/clip-vit-base-patch32, whose sizes are the configuration's defaults, with some of them changed."""
    return a_job(model=Model(hf_config={**BASE, **config}))


def test_the_published_model_has_its_parameters() -> None:
    """openai/clip-vit-base-patch32 (its safetensors file): 151,277,313."""
    answer = predict(clip())
    assert answer.parameters == 151_277_313
    assert answer.undecided == ()


def test_each_tower_has_sizes_of_its_own() -> None:
    """openai/clip-vit-large-patch14: 427,616,513 parameters."""
    large = clip(
        text_config={"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
        vision_config={
            "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14,
        },
        projection_dim=768,
    )  # fmt: skip
    assert predict(large).parameters == 427_616_513


def test_a_length_that_is_not_stated_is_the_models() -> None:
    """77 tokens of text (configuration_clip.py), and the patches of the picture with their class token."""
    plan = a_plan(model=Model(hf_config=BASE))
    assert (plan.sequence, plan.target) == (50, 32)  # the builders' job states 32 tokens
    silent = replace(clip(), batch=replace(clip().batch, sequence_length=None))
    assert predict(silent).saved_activation_bytes_per_layer > predict(clip()).saved_activation_bytes_per_layer


def test_bare_dimensions_leave_the_pictures_open() -> None:
    """The document's own sizes are those of the text: the answer says what was taken for the other tower."""
    assert any("tower of pictures" in reason for reason in predict(a_job(model=a_transformer("clip"))).undecided)


def test_the_vision_tower_can_be_frozen() -> None:
    """Its weights have no states; the projection behind it stands outside the layers and trains on as the head does."""
    frozen = replace(clip(), frozen=("vision_tower",))
    whole, half = predict(clip()), predict(frozen)
    assert half.trainable_parameters < whole.trainable_parameters - 80_000_000
    assert half.allocated_bytes < whole.allocated_bytes


@pytest.mark.parametrize("row", ROWS[:2], ids=["fused", "foreach"])
def test_pictures_are_part_of_the_batch(row: dict[str, object]) -> None:
    """More pictures, more input."""
    job = job_of(row["job"])
    more = replace(job, batch=replace(job.batch, micro_batch_size=2 * (job.batch.micro_batch_size or 0)))
    assert predict(more).live_bytes > predict(job).live_bytes
