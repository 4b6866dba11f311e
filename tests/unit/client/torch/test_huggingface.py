"""The callback of transformers, on a module with its events in its place. A real Trainer runs in tests/integration/test_torch_helper.py."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.client.live.fakes import CONFIG, Config, Model, arguments
from tests.unit.client.live.fakes import trainer as a_trainer
from tests.unit.client.torch.fakes import GIB, FakeCuda, Inbox
from tests.unit.client.torch.frameworks import TRANSFORMERS_HOOKS, fake_transformers
from tests.unit.client.torch.test_batches import tensor
from tests.unit.client.torch.test_training import echoing

from peakgate.client.torch import ask
from peakgate.client.torch.reporter import Reporter

BATCH = {"input_ids": tensor(4, 128)}


class Handle:
    """Of a hook."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """As torch's."""
        self._hooks.remove(self._hook)


class Hooked(Model):
    """A model that calls its hooks."""

    def __init__(self) -> None:
        super().__init__(config=Config(**CONFIG))
        self.before: list[Callable[..., object]] = []
        self.after: list[Callable[..., object]] = []

    def register_forward_pre_hook(self, hook: Callable[..., object], *, with_kwargs: bool) -> Handle:
        """As torch's."""
        assert with_kwargs
        self.before.append(hook)
        return Handle(self.before, hook)

    def register_forward_hook(self, hook: Callable[..., object], *, always_call: bool) -> Handle:
        """As torch's."""
        assert always_call
        self.after.append(hook)
        return Handle(self.after, hook)

    def forward(self, cuda: FakeCuda, size: int) -> None:
        """A forward pass that takes memory."""
        for hook in self.before:
            hook(self, (), BATCH)
        cuda.allocate(size)
        for hook in self.after:
            hook(self, (), None)


class Run:
    """A Trainer's events, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, inbox: Inbox, **of_arguments: object) -> None:
        self.torch = fake_transformers(monkeypatch)
        self.module = importlib.import_module("peakgate.client.torch.huggingface")
        self.cuda = FakeCuda()
        self.model = Hooked()
        self.arguments = arguments(**of_arguments)
        self.reporter = Reporter(cuda=self.cuda, socket_path=inbox.path, interval_seconds=0.0)
        monkeypatch.setattr(ask, "PROGRAM", echoing("batch.micro_batch_size", "batch.sequence_length"))
        trainer = a_trainer(self.arguments, self.model)
        self.callback = self.module.PeakgateCallback(trainer, reporter=self.reporter)

    def event(self, name: str) -> None:
        """As CallbackHandler.call_event calls it."""
        getattr(self.callback, name)(self.arguments, None, None, model=self.model)

    def step(self) -> None:
        """A step of two micro-batches."""
        self.event("on_step_begin")
        for number in range(2):
            self.model.forward(self.cuda, 8 * GIB)
            self.cuda.use(GIB)
            self.cuda.free(8 * GIB)
            if not number:
                self.event("on_substep_end")
        self.event("on_pre_optimizer_step")
        self.cuda.use(12 * GIB)
        self.event("on_optimizer_step")
        self.event("on_step_end")


def test_every_event_is_one_of_transformers(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    """An event with another name would never be called."""
    run = Run(monkeypatch, inbox)
    own = {name for name in vars(run.module.PeakgateCallback) if name.startswith("on_")}
    assert own - set(TRANSFORMERS_HOOKS) == set()


def test_a_training_from_its_events(monkeypatch: pytest.MonkeyPatch, inbox: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked in front of the first forward pass, with its length, since the arguments have no limit; an evaluation's passes are not the
    training's; the model's hooks are gone at the end."""
    run = Run(monkeypatch, inbox)
    run.event("on_train_begin")
    run.cuda.allocate(16 * GIB)
    for _ in range(3):
        run.step()
    run.torch.grad = False
    run.model.forward(run.cuda, 20 * GIB)
    run.event("on_evaluate")
    run.cuda.use(10 * GIB)
    run.event("on_save")
    run.event("on_train_end")
    report = inbox.reports()[-1]
    phases = {each.phase: each.allocated_bytes / GIB for each in report.phases}
    assert phases == {"load": 16, "forward": 24, "backward": 25, "optimizer": 28, "evaluate": 36, "save": 46}
    assert (report.steps_done, report.longest_sequence, capsys.readouterr().err) == (3, 128, "peakgate: ADMIT: 4 128\n")
    assert (run.model.before, run.model.after) == ([], [])


def test_an_older_trainer_has_no_event_between_backward_and_optimizer(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    """Then the growth of both is nobody's, and not wrongly the optimizer's."""
    run = Run(monkeypatch, inbox)
    run.event("on_train_begin")
    run.event("on_step_begin")
    run.model.forward(run.cuda, 8 * GIB)
    run.cuda.use(GIB)
    run.event("on_optimizer_step")
    run.event("on_step_end")
    assert {each.phase for each in inbox.reports()[-1].phases} == {"forward"}


def test_a_compiled_model_gets_no_hooks(monkeypatch: pytest.MonkeyPatch, inbox: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    """They would be traced. The prediction is asked for at the beginning, and lacks what no batch has shown."""
    run = Run(monkeypatch, inbox, torch_compile=True)
    monkeypatch.setattr(ask, "PROGRAM", echoing("batch.micro_batch_size"))
    run.event("on_train_begin")
    assert (run.model.before, capsys.readouterr().err) == ([], "peakgate: ADMIT: 4\n")


def test_a_model_that_takes_no_hooks_is_one_line(monkeypatch: pytest.MonkeyPatch, inbox: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    """The training goes on without them."""
    run = Run(monkeypatch, inbox)
    monkeypatch.setattr(run.callback, "_trainer", SimpleNamespace(model=object()))
    run.event("on_train_begin")
    run.event("on_step_end")
    assert (run.reporter.steps_done, capsys.readouterr().err.count("\n")) == (1, 1)
