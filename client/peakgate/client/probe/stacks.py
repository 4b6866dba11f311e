"""What a stack of frames says of an allocation: the phase of the step, a library's workspace, a weight that is put in its place.

Sources of the names: torch/csrc/autograd/engine.cpp (Engine), torch/optim/optimizer.py, torch/nn/functional.py, torch/nn/modules/module.py;
aten/src/ATen/cuda/CublasHandlePool.cpp (getNewWorkspace); transformers modeling_utils.py and core_model_loading.py.
"""

from __future__ import annotations

from peakgate.client.probe.snapshot import Frames

PHASES: tuple[tuple[str, tuple[str, ...], frozenset[str]], ...] = (
    ("backward", ("torch::autograd::Engine::",), frozenset({"backward", "_engine_run_backward", "run_backward"})),
    ("optimizer", ("/torch/optim/", "/apex/optimizers/", "/bitsandbytes/optim/", "/deepspeed/ops/"), frozenset()),
    (
        "loss",
        ("/losses/", "/loss/"),
        frozenset({"cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits", "loss_function"}),
    ),
    ("forward", (), frozenset({"forward", "_call_impl", "_wrapped_call_impl"})),
)
"""Phase, what its frames' files or C++ functions contain, and its Python functions; the first that fits: a layer that is run again in
the backward pass is part of that."""

WORKSPACES = ("getNewWorkspace", "getCUDABlasLtWorkspace", "get_workspace", "getCurrentCUDABlasHandle")
LOADING = frozenset({"_apply", "load_state_dict", "reset_parameters", "from_pretrained", "to_empty", "set_module_tensor_to_device"})

ENGINE = "backward"
"""Of a stack without a Python frame where others have one: the engine's own thread runs no Python."""


def phase_of(frames: Frames) -> str:
    """The phase that a stack belongs to, or nothing."""
    for phase, parts, functions in PHASES:
        if any(name in functions or any(part in name or part in file for part in parts) for file, name in frames):
            return phase
    return ""


def is_workspace(frames: Frames) -> bool:
    """Whether a library took it for itself."""
    return any(mark in name for _, name in frames for mark in WORKSPACES)


def is_loading(frames: Frames) -> bool:
    """Whether weights are made or moved."""
    return any(name in LOADING or (name == "__init__" and "/torch/nn/modules/" in file) for file, name in frames)
