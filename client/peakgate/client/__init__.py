"""The Python client and the command `peakgate`.

    import peakgate.client
    answer = peakgate.client.predict(peakgate.client.from_trainer(trainer))

The functions here import what they need when they are called: a verb of the command that needs none of it starts no slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakgate.v1.prediction_pb2 import PredictResponse
    from peakgate.v1.training_job_pb2 import TrainingJob

__all__ = ["from_model", "from_trainer", "predict"]


def predict(job: Mapping[str, object] | TrainingJob, *, server: str | None = None, db: str | None = None) -> PredictResponse:
    """The answer to one job: a job document as a mapping, or a message. `server`: HOST:PORT; else PEAKGATE_SERVER, else a service in this
    process, which keeps its prediction in the database `db` if one is named. Raises PeakgateError."""
    from pathlib import Path

    from peakgate.client.connect import open_client
    from peakgate.client.named_files import job_of

    message = job_of(job, Path()) if isinstance(job, Mapping) else job
    with open_client(server, db) as client:
        return client.predict(message)


def from_trainer(trainer: object, *, sequence_length: int = 0, gpu: str = "") -> dict[str, object]:
    """The job document of a transformers Trainer or of one of TRL's, before `train()` is called.

    `sequence_length`: of the batches, where the arguments have no limit (a Trainer's have none). `gpu`: a name of the catalogue; else the
    card that PyTorch sees.
    """
    from peakgate.client.live.trainer import read_trainer

    return read_trainer(trainer, sequence_length=sequence_length, gpu=gpu).document()


def from_model(
    model: object,
    *,
    micro_batch_size: int = 0,
    sequence_length: int = 0,
    gradient_accumulation_steps: int = 0,
    optimizer: object | None = None,
    autocast: object | None = None,
    gpu: str = "",
    world_size: int = 0,
) -> dict[str, object]:
    """The job document of a PyTorch model and its optimizer, for a loop of one's own.

    `autocast`: the dtype of torch.autocast around the forward pass (torch.bfloat16 or its name); `world_size`: ranks, where no process
    group is open yet. A model without a configuration of transformers is its number of parameters: `peakgate trace` knows it better.
    """
    from peakgate.client.live.model import read_model

    reading = read_model(
        model,
        micro_batch_size=micro_batch_size,
        sequence_length=sequence_length,
        gradient_accumulation_steps=gradient_accumulation_steps,
        optimizer=optimizer,
        autocast=autocast,
        gpu=gpu,
        world_size=world_size,
    )
    return reading.document()
