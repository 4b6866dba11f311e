"""A Trainer of Lightning, under either of its names.

    from peakgate.client.torch.lightning import PeakgateCallback
    trainer = Trainer(callbacks=[PeakgateCallback()])

Source: pytorch_lightning/callbacks/callback.py (hooks), loops/optimization/automatic.py and plugins/precision/precision.py (forward and
backward run inside the optimizer's closure; on_before_optimizer_step comes after them), trainer/trainer.py (global_step counts optimizer
steps), trainer/call.py (on_exception).
"""

from __future__ import annotations

import sys
from typing import Any

from peakgate.client.torch.allocator import is_out_of_memory
from peakgate.client.torch.batches import Shape, shape_of
from peakgate.client.torch.training import Training

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

AUTOCAST = {"bf16-mixed": "bfloat16", "16-mixed": "float16"}
"""Of the Trainer's `precision`; with bf16-true and 16-true the model is in that format itself."""


class PeakgateCallback(Callback):  # type: ignore[misc] # Lightning is not always installed
    """Predicts before the first batch is used, then reports. The sizes default to those of the first batch.

    `options`: predict, on_reject, time_limit_seconds, reset_peaks, reporter (see Training).
    """

    def __init__(self, *, micro_batch_size: int = 0, sequence_length: int = 0, gpu: str = "", **options: Any) -> None:
        self._sizes = Shape(micro_batch_size, sequence_length)
        self._gpu = gpu
        self._options = options
        self._steps_before = 0
        self.training: Training | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """A training begins, resumed or not."""
        self.training = Training(lambda shape: self._read_job(trainer, pl_module, shape), **self._options)
        self._steps_before = int(trainer.global_step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """What came before is loading, or between the batches."""
        if self.training:
            self.training.reporter.outside()
            self.training.batch(shape_of(batch))

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """The loss is there."""
        self._passed("forward")

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """Gradients are there."""
        self._passed("backward")

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Gradients are there and unscaled."""
        self._passed("backward")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Of the last batch of an accumulation an optimizer step is a part."""
        if self.training and int(trainer.global_step) != self._steps_before:
            self._steps_before = int(trainer.global_step)
            self._passed("optimizer")
            self.training.reporter.step()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """What came before is not evaluation's."""
        if self.training:
            self.training.reporter.outside()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """An evaluation is over."""
        self._passed("evaluate")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """The model's state has been gathered."""
        self._passed("save")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """An out-of-memory error is told at once."""
        if self.training and is_out_of_memory(type(exception)):
            self.training.reporter.out_of_memory(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """The last report."""
        if self.training:
            self.training.reporter.close()

    def _read_job(self, trainer: Any, module: Any, shape: Shape) -> dict[str, object]:
        from peakgate.client import from_model

        return from_model(
            network_of(module),
            micro_batch_size=self._sizes.micro_batch or shape.micro_batch,
            sequence_length=self._sizes.sequence_length or shape.sequence_length,
            gradient_accumulation_steps=int(trainer.accumulate_grad_batches),
            optimizer=next(iter(trainer.optimizers), None),
            autocast=AUTOCAST.get(str(trainer.precision)),
            gpu=self._gpu,
            world_size=int(trainer.world_size),
        )

    def _passed(self, phase: str) -> None:
        if self.training:
            self.training.reporter.passed(phase)


def network_of(module: Any) -> Any:
    """The network that a LightningModule holds when it is one with a configuration of transformers; else the module itself."""
    return next((each for each in (module, *module.children()) if hasattr(getattr(each, "config", None), "model_type")), module)
