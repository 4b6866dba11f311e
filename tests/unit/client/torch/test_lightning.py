"""The callback of Lightning, on a module with Lightning's hooks in its place."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.client.live.fakes import Config, Model
from tests.unit.client.torch.fakes import GIB, FakeCuda, Inbox, OutOfMemoryError
from tests.unit.client.torch.frameworks import LIGHTNING_HOOKS, fake_lightning
from tests.unit.client.torch.test_batches import tensor
from tests.unit.client.torch.test_training import echoing

from peakgate.client.torch import ask
from peakgate.client.torch.reporter import Reporter

BATCH = {"input_ids": tensor(4, 128)}


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def callbacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the callback over either name of Lightning."""
    fake_lightning(monkeypatch, request.param)
    return importlib.import_module("peakgate.client.torch.lightning")


def a_trainer(**changes: object) -> SimpleNamespace:
    """What is read of a Trainer."""
    known = {"global_step": 0, "accumulate_grad_batches": 2, "optimizers": [], "precision": "bf16-mixed", "world_size": 8}
    return SimpleNamespace(**known | changes)


def a_lightning_module(network: object) -> SimpleNamespace:
    """A LightningModule that holds a network."""
    return SimpleNamespace(children=lambda: [SimpleNamespace(), network])


def test_every_method_is_a_hook_of_lightning(callbacks: Any) -> None:
    """A hook with another name would never be called."""
    own = {name for name in vars(callbacks.PeakgateCallback) if not name.startswith("_")}
    assert own - set(LIGHTNING_HOOKS) == set()
    assert len(own) == 11


def test_a_training_from_its_hooks(callbacks: Any, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicted before the first batch is used, with its sizes; phases by the hooks; optimizer steps as the Trainer counts them."""
    names = ("batch.micro_batch_size", "batch.sequence_length", "batch.gradient_accumulation_steps", "precision.recipe")
    monkeypatch.setattr(ask, "PROGRAM", echoing(*names))
    cuda, trainer, module = FakeCuda(), a_trainer(), a_lightning_module(Model(config=Config(model_type="llama")))
    reporter = Reporter(cuda=cuda, socket_path=inbox.path, interval_seconds=0.0)
    callback = callbacks.PeakgateCallback(reporter=reporter)
    callback.on_fit_start(trainer, module)
    cuda.allocate(16 * GIB)
    for number in range(4):
        callback.on_train_batch_start(trainer, module, BATCH, number)
        cuda.allocate(8 * GIB)
        callback.on_before_backward(trainer, module, None)
        cuda.use(GIB)
        cuda.free(8 * GIB)
        callback.on_after_backward(trainer, module)
        if number % 2:
            callback.on_before_optimizer_step(trainer, module, None)
            cuda.use(12 * GIB)
            trainer.global_step += 1
        callback.on_train_batch_end(trainer, module, None, BATCH, number)
    callback.on_validation_start(trainer, module)
    cuda.use(20 * GIB)
    callback.on_validation_end(trainer, module)
    callback.teardown(trainer, module, "fit")
    assert callback.training.answer.reason == "4 128 2 amp-bf16"
    report = inbox.reports()[-1]
    phases = {each.phase: each.allocated_bytes / GIB for each in report.phases}
    assert (report.steps_done, report.longest_sequence) == (2, 128)
    assert phases == {"load": 16, "forward": 24, "backward": 25, "optimizer": 28, "evaluate": 36}


def test_an_exception_of_the_fit_is_told_when_it_is_out_of_memory(callbacks: Any, inbox: Inbox) -> None:
    """Lightning hands the exception to its callbacks before it raises it again."""
    cuda = FakeCuda()
    reporter = Reporter(cuda=cuda, socket_path=inbox.path)
    callback = callbacks.PeakgateCallback(reporter=reporter, predict=False)
    callback.on_fit_start(a_trainer(), None)
    cuda.allocate(GIB)
    callback.on_exception(a_trainer(), None, KeyboardInterrupt())
    assert inbox.reports() == []
    callback.on_exception(a_trainer(), None, OutOfMemoryError())
    assert [report.ooms for report in inbox.reports()] == [1]


def test_hooks_before_a_fit_do_nothing(callbacks: Any) -> None:
    """`trainer.validate` calls some of them without a fit."""
    callback = callbacks.PeakgateCallback()
    callback.on_validation_start(a_trainer(), None)
    callback.on_validation_end(a_trainer(), None)
    callback.teardown(a_trainer(), None, "validate")
    assert callback.training is None


def test_the_network_is_found_in_its_module(callbacks: Any) -> None:
    """The child with a configuration of transformers; without one, the module is all there is."""
    network = Model(config=SimpleNamespace(model_type="llama"))
    module = a_lightning_module(network)
    assert callbacks.network_of(module) is network
    plain = SimpleNamespace(children=list)
    assert callbacks.network_of(plain) is plain
