"""Sizes that no job has, and that would keep a service busy: losses that go sequence by sequence, or chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.job import Job
from peakgate.memory.methods.rows import METHODS
from peakgate.memory.prediction import FieldError

LARGEST = {
    "batch.micro_batch_size": 1 << 20,
    "batch.sequence_length": 1 << 27,
    "batch.target_length": 1 << 27,
    "parallelism": 1 << 20,
    "parallelism.expert_imbalance": 1 << 10,
    "model.transformer": 1 << 24,
    "model.transformer.layers": 1 << 9,
    "model.transformer.encoder_layers": 1 << 9,
    "method.sequences_per_example": 1 << 10,
    "evaluate.micro_batch_size": 1 << 20,
    "checkpointing.every": 1 << 6,
    "loss.create_graph_factor": 1 << 6,
    "lora.rank": 1 << 16,
    "gpu.memory_bytes": 1 << 50,
    "gpu.count": 1 << 20,
    "batch": 1 << 27,
}
"""Sizes beyond these are a mistake, not a job (the longest prefix of a path counts)."""

ANY_SIZE = ("model.parameters", "node.host_memory_bytes", "framework.zero")

SEQUENCES = 1 << 12
"""Of a micro-batch whose loss is computed sequence by sequence (`methods/log_probabilities.py`)."""

CHUNKED_TOKENS = 1 << 19
"""Of a micro-batch whose loss goes through LitGPT's chunks of 128 rows (`losses_litgpt.py`)."""

OTHER_MODELS = ("method.critic.", "method.teacher.", "method.reward.")


def too_large(path: str, value: float) -> str:
    """What to say of a size beyond its limit; those of a method's other models are the model's. Empty when it may be."""
    for prefix in OTHER_MODELS:
        path = path.replace(prefix, "model.")
    limit = max((prefix for prefix in LARGEST if path.startswith(prefix)), key=len, default="")
    if limit and value > LARGEST[limit] and not path.startswith(ANY_SIZE):
        return f"{value} is absurd: at most {LARGEST[limit]}"
    return f"{value} is absurd: at most 10^15" if path == "model.parameters" and value > 10**15 else ""


def endless_losses(job: Job) -> Iterator[FieldError]:
    """Micro-batches that a loss would take apart into too many pieces."""
    batch, method = job.batch.micro_batch_size or 0, METHODS.get(job.method.name or "")
    if method is not None and method.loss:
        sequences = job.method.sequences_per_example or 1
        for path, size in (("batch.micro_batch_size", batch), ("evaluate.micro_batch_size", job.evaluate.micro_batch_size or 0)):
            if size * sequences > SEQUENCES:
                description = (
                    f"{size * sequences} sequences, each with a loss of its own under method {job.method.name}: at most {SEQUENCES}"
                )
                yield FieldError(field=path, description=description)
    tokens = batch * (job.batch.sequence_length or 0)
    if job.framework.name == "litgpt" and tokens > CHUNKED_TOKENS:
        description = f"{tokens} tokens a micro-batch, in chunks of 128: at most {CHUNKED_TOKENS}"
        yield FieldError(field="batch.sequence_length", description=description)
