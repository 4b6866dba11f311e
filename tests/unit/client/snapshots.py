"""Snapshots as torch.cuda.memory._dump_snapshot pickles them, made by hand."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

Fields = dict[str, object]

MIB = 1 << 20
BACKWARD = ("??", "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)")
FORWARD = ("/lib/torch/nn/modules/module.py", "_call_impl")
LOSS = ("/lib/torch/nn/functional.py", "cross_entropy")
OPTIMIZER = ("/lib/torch/optim/adamw.py", "step")
LOADING = ("/lib/torch/nn/modules/module.py", "_apply")
WORKSPACE = ("??", "at::cuda::(anonymous namespace)::getNewWorkspace()")


def stack(*frames: tuple[str, str]) -> list[Fields]:
    """Frames, innermost first, under the script that runs them all."""
    return [{"filename": file, "name": name, "line": 1} for file, name in (*frames, ("/home/me/train.py", "<module>"))]


def moved(action: str, address: int, mib: int, *frames: tuple[str, str], **fields: object) -> Fields:
    """An entry of the history."""
    return {"action": action, "addr": address, "size": mib * MIB, "stream": 0, "frames": stack(*frames), **fields}


def a_step() -> list[Fields]:
    """A weight and a workspace, then a step: 8 MiB kept of 12, logits, a gradient, 8 MiB of states."""
    return [
        moved("alloc", 1, 4, LOADING),
        moved("segment_alloc", 90, 64),
        moved("alloc", 2, 8, FORWARD),
        moved("alloc", 3, 4, FORWARD),
        moved("free_requested", 3, 4),
        moved("free_completed", 3, 4),
        moved("alloc", 4, 32, WORKSPACE, FORWARD),
        moved("alloc", 5, 2, LOSS, FORWARD),
        moved("alloc", 6, 4, BACKWARD, FORWARD),
        moved("free_completed", 5, 2),
        moved("free_completed", 2, 8),
        moved("segment_free", 91, 100),
        moved("alloc", 7, 8, OPTIMIZER),
        moved("alloc", 8, 1, OPTIMIZER),
        moved("free_completed", 8, 1),
        moved("free_completed", 6, 4),
    ]


def a_segment(*blocks: Fields, mib: int = 64, **fields: object) -> Fields:
    """A segment at the end of the recording."""
    return {
        "device": 0,
        "address": 0,
        "total_size": mib * MIB,
        "stream": 0,
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": list(blocks),
        "frames": [],
        **fields,
    }


def a_block(address: int, mib: int, state: str = "active_allocated") -> Fields:
    """A block of it."""
    return {"address": address, "size": mib * MIB, "requested_size": mib * MIB, "state": state, "frames": []}


def a_snapshot(entries: Iterable[Fields] | None = None, *segments: Fields) -> Fields:
    """The whole."""
    return {"segments": list(segments), "device_traces": [list(a_step() if entries is None else entries), []], "allocator_settings": {}}


def written(folder: Path, snapshot: object) -> Path:
    """A file as PyTorch writes it."""
    path = folder / "run.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    return path
