"""A training loop of one's own.

    training = watch(model, optimizer=optimizer, autocast=torch.bfloat16)
    for batch in training.batches(loader):
        ...

`with watch(...) as training:` tells an out-of-memory error at once; without it the end of the process does. Phases, where the loop wants
them: `with training.reporter.phase("forward"):`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from peakgate.client.torch.allocator import is_out_of_memory
from peakgate.client.torch.batches import Shape, shape_of
from peakgate.client.torch.training import ReadJob, Training

Batch = TypeVar("Batch")


class Loop(Training):
    """A training that is a loop over batches. `is_step` says, after a batch, whether an optimizer step was done with it."""

    def __init__(self, read_job: ReadJob, *, is_step: Callable[[int], bool], **options: Any) -> None:
        super().__init__(read_job, **options)
        self._is_step = is_step
        self._batches = 0

    def batches(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches, watched; once an epoch."""
        for batch in batches:
            with self.unharmed():
                self.reporter.outside()
                self.batch(shape_of(batch))
            yield batch
            self._batches += 1
            with self.unharmed():
                if self._is_step(self._batches):
                    self.reporter.step()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None and error is not None and is_out_of_memory(kind):
            self.reporter.out_of_memory(error)
        self.reporter.close()


def watch(
    model: object,
    *,
    optimizer: object | None = None,
    autocast: object | None = None,
    micro_batch_size: int = 0,
    sequence_length: int = 0,
    gradient_accumulation_steps: int = 1,
    gpu: str = "",
    world_size: int = 0,
    **options: Any,
) -> Loop:
    """Watches a loop over this model. The sizes default to those of the first batch; the rest is as for `peakgate.client.from_model`.

    `options`: predict, on_reject, time_limit_seconds, reset_peaks, reporter (see Training).
    """

    def read_job(shape: Shape) -> dict[str, object]:
        from peakgate.client import from_model

        return from_model(
            model,
            micro_batch_size=micro_batch_size or shape.micro_batch,
            sequence_length=sequence_length or shape.sequence_length,
            gradient_accumulation_steps=gradient_accumulation_steps,
            optimizer=optimizer,
            autocast=autocast,
            gpu=gpu,
            world_size=world_size,
        )

    return Loop(read_job, is_step=lambda batches: batches % gradient_accumulation_steps == 0, **options)
