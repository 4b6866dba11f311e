"""A Trainer of transformers or TRL.

    from peakgate.client.torch.huggingface import PeakgateCallback
    trainer.add_callback(PeakgateCallback(trainer))

Source: transformers/trainer_callback.py and trainer.py (where each event is called; on_pre_optimizer_step came later than
on_optimizer_step), torch/nn/modules/module.py (forward hooks; `always_call` runs one after an exception too).
"""

from __future__ import annotations

import sys
from typing import Any

from transformers import TrainerCallback

from peakgate.client.torch.batches import Shape, shape_of
from peakgate.client.torch.training import Training

LENGTH = "batch.sequence_length"


class PeakgateCallback(TrainerCallback):  # type: ignore[misc] # transformers is not always installed
    """Predicts before the first forward pass, then reports. `sequence_length`: of the batches, where the arguments have no limit;
    without it that of the first batch counts. `options`: predict, on_reject, time_limit_seconds, reset_peaks, reporter (see Training)."""

    def __init__(self, trainer: Any, *, sequence_length: int = 0, gpu: str = "", **options: Any) -> None:
        self._trainer = trainer
        self._sequence_length = sequence_length
        self._gpu = gpu
        self._options = options
        self._hooks: list[Any] = []
        self._ended_in_backward = False
        self.training: Training | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Hooks into the model's forward pass, unless torch.compile would trace the hooks: then no batch is seen."""
        self.training = Training(self._read_job, **self._options)
        if getattr(args, "torch_compile", False):
            self.training.batch()
            return
        with self.training.unharmed():
            model = self._trainer.model
            self._hooks = [
                model.register_forward_pre_hook(self._before_forward, with_kwargs=True),
                model.register_forward_hook(self._after_forward, always_call=True),
            ]

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """What came before is loading, or between the steps."""
        if self.training:
            self.training.reporter.outside()

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A micro-batch without an optimizer step."""
        self._passed("backward")

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Gradients are there and clipped."""
        self._passed("backward")
        self._ended_in_backward = True

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before the gradients are let go. Where the event before it does not exist yet, backward and optimizer are one."""
        self._passed("optimizer" if self._ended_in_backward else "")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An optimizer step is done."""
        if self.training:
            self.training.reporter.step()

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After an evaluation."""
        self._passed("evaluate")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a checkpoint."""
        self._passed("save")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The last report; the model is as it was."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self.training:
            self.training.reporter.close()

    def _read_job(self, shape: Shape) -> dict[str, object]:
        from peakgate.client import from_trainer

        job = from_trainer(self._trainer, sequence_length=self._sequence_length, gpu=self._gpu)
        if shape.sequence_length:
            job.setdefault(LENGTH, shape.sequence_length)
        return job

    def _before_forward(self, module: Any, positional: Any, named: Any) -> None:
        if self.training and _is_training():
            self.training.batch(shape_of(named) if named else shape_of(positional))

    def _after_forward(self, *_: Any) -> None:
        if self.training and _is_training():
            self._passed("forward")

    def _passed(self, phase: str) -> None:
        if self.training:
            self.training.reporter.passed(phase)


def _is_training() -> bool:
    """Whether gradients are recorded: neither evaluation nor the generation of a rollout."""
    torch: Any = sys.modules["torch"]
    return bool(torch.is_grad_enabled())
