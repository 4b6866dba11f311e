"""A job with a capped length, predicted again."""

from __future__ import annotations

from peakgate.server.lengths import at_length
from peakgate.server.memory import memory_model
from peakgate.v1.training_job_pb2 import TrainingJob


def a_job(**batch: object) -> TrainingJob:
    """A small model whose batch is what the tests are about."""
    job = TrainingJob()
    transformer = job.model.transformer
    transformer.block, transformer.layers, transformer.hidden_size, transformer.heads = "llama", 8, 1024, 8
    transformer.ffn_hidden_size, transformer.vocab_size = 4096, 32000
    values = {"micro_batch_size": 4, "sequence_length": 2048, "sequence_length_is": "cap"} | batch
    for name, value in values.items():
        setattr(job.batch, name, value)
    return job


def test_a_length_that_is_the_datas_own_is_predicted_once() -> None:
    """Only a cap is predicted again; with the data's own longest sequence stated it is no open question."""
    assert at_length(memory_model(), a_job(sequence_length_is="exact").SerializeToString()) is None
    stated = a_job()
    stated.batch.sequence_lengths.max = 1000
    assert at_length(memory_model(), stated.SerializeToString()) is None


def test_a_shorter_sequence_is_predicted_to_need_less() -> None:
    """And the same as a job that states that length as its own."""
    memory = memory_model()
    again = at_length(memory, a_job().SerializeToString())
    assert again is not None
    short, cap = again(512), again(2048)
    assert short is not None
    assert cap is not None
    assert short.device_bytes < cap.device_bytes
    same = at_length(memory, a_job(sequence_length=512).SerializeToString())
    assert same is not None
    assert same(512) == short


def test_a_length_that_says_too_little_is_not_predicted() -> None:
    """None was seen; a rank of a context group sees a part of it; a decoder has its own."""
    memory = memory_model()
    unseen = at_length(memory, a_job().SerializeToString())
    decoder = at_length(memory, a_job(target_length=100).SerializeToString())
    in_parts = a_job()
    in_parts.parallelism.context = 2
    split = at_length(memory, in_parts.SerializeToString())
    assert [found(tokens) for found, tokens in ((unseen, 0), (decoder, 512), (split, 512)) if found is not None] == [None, None, None]
