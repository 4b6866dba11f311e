"""Packages of frameworks that need not be installed, with the hooks that their own sources have."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

LIGHTNING_HOOKS = re.findall(
    r"\w+",
    """
setup teardown on_fit_start on_fit_end on_sanity_check_start on_sanity_check_end on_train_batch_start on_train_batch_end
on_train_epoch_start on_train_epoch_end on_validation_epoch_start on_validation_epoch_end on_test_epoch_start on_test_epoch_end
on_predict_epoch_start on_predict_epoch_end on_validation_batch_start on_validation_batch_end on_test_batch_start on_test_batch_end
on_predict_batch_start on_predict_batch_end on_train_start on_train_end on_validation_start on_validation_end on_test_start on_test_end
on_predict_start on_predict_end on_exception state_dict load_state_dict on_save_checkpoint on_load_checkpoint on_before_backward
on_after_backward on_before_optimizer_step on_before_zero_grad
""",
)
"""pytorch_lightning 2.6.6, callbacks/callback.py."""

TRANSFORMERS_HOOKS = re.findall(
    r"\w+",
    """
on_init_end on_train_begin on_train_end on_epoch_begin on_epoch_end on_step_begin on_pre_optimizer_step on_optimizer_step on_substep_end
on_step_end on_evaluate on_predict on_save on_log on_prediction_step on_push_begin
""",
)
"""transformers 5.24.0, trainer_callback.py."""


def fake_lightning(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Lightning under one of its names, and only that one."""
    for each in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    if name == "lightning.pytorch":
        package = ModuleType("lightning")
        package.__path__ = []
        monkeypatch.setitem(sys.modules, "lightning", package)
    module = ModuleType(name)
    module.Callback = type("Callback", (), dict.fromkeys(LIGHTNING_HOOKS))  # type: ignore[attr-defined]  # a fake module takes what it is given
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "peakgate.client.torch.lightning", raising=False)


def fake_transformers(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """transformers, and a torch that can say whether gradients are recorded; that is what is given back."""
    module = ModuleType("transformers")
    module.TrainerCallback = type("TrainerCallback", (), dict.fromkeys(TRANSFORMERS_HOOKS))  # type: ignore[attr-defined]  # a fake module takes what it is given
    monkeypatch.setitem(sys.modules, "transformers", module)
    torch = SimpleNamespace(grad=True)
    torch.is_grad_enabled = lambda: torch.grad
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "peakgate.client.torch.huggingface", raising=False)
    return torch
