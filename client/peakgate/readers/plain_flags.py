"""Flags that plain training loops share, each with what is certain of it."""

from __future__ import annotations

from peakgate.readers.convert import flag, positive
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on

MICRO_BATCHES = (
    "per_device_train_batch_size",
    "micro_batch_size",
    "train_micro_batch_size_per_gpu",
    "micro_batch_size_per_gpu",
    "per_gpu_batch_size",
    "per_device_batch_size",
    "batch_size_per_gpu",
    "batch_size_per_device",
    "device_batch_size",
    "train_micro_batch_size",
    "mbs",
    "micro_bsz",
)
"""Batches of one GPU by their names."""

BATCHES = ("batch_size", "train_batch_size", "bs", "batch")
"""Names that say nothing of whose batch it is: a loop's own on one rank, as DataLoader takes it."""

SEQUENCES = (
    "max_seq_len",
    "max_seq_length",
    "seq_length",
    "seq_len",
    "sequence_length",
    "block_size",
    "max_length",
    "context_length",
    "max_sequence_length",
    "model_max_length",
    "ctx_len",
    "max_len",
)
CHECKPOINTS = (
    "gradient_checkpointing",
    "activation_checkpointing",
    "checkpoint_activations",
    "deepspeed_activation_checkpointing",
    "enable_activation_checkpointing",
    "use_gradient_checkpointing",
    "grad_checkpointing",
    "actor_gradient_checkpointing",
)


def state_first(settings: Settings, names: tuple[str, ...], path: str, reading: Reading) -> None:
    """The first name that is there with a size."""
    name = next((each for each in names if settings(each) is not None), None)
    if name is not None and reading.get(path) is None:
        apply([Row(name, path, positive)], settings, reading)


def state_micro_batch(settings: Settings, reading: Reading, names: tuple[str, ...] = (*MICRO_BATCHES, *BATCHES)) -> None:
    """The batch of one GPU."""
    state_first(settings, names, "batch.micro_batch_size", reading)


def state_sequence(settings: Settings, reading: Reading) -> None:
    """The sequence's length."""
    state_first(settings, SEQUENCES, "batch.sequence_length", reading)


def state_checkpoints(settings: Settings, reading: Reading) -> None:
    """A switch for checkpoints around each layer; DeepSpeed's own are reentrant (runtime/activation_checkpointing/checkpointing.py)."""
    name = next((each for each in CHECKPOINTS if settings(each) is not None), None)
    if name is not None:
        apply([Row(name, "checkpointing.mode", lambda stated: "full" if flag(stated) else "none")], settings, reading)
    if place := switched_on(settings, "deepspeed_activation_checkpointing", "checkpoint_activations"):
        reading.state("checkpointing.reentrant", value=True, place=place)
