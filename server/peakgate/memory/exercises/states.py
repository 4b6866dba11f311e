"""Exercise 2: model states, and how many GPUs they fill (Lesson 6, section 3, "Model states"; section 8, question 2)."""

from __future__ import annotations

from itertools import count

from peakgate.memory.job import Framework, Job, Model, Optimizer, Parallelism, Precision
from peakgate.memory.predict import predict

WEIGHTS_AND_GRADIENTS = ("parameters", "gradients")

OPTIMIZERS = (
    ("adamw", "float32", "float32"),  # ZeRO, arXiv 1910.02054, section 3.1: master weights and two moments
    ("adamw", "none", "float32"),
    ("sgd-momentum", "float32", "bfloat16"),
    ("adamw", "none", "bfloat16"),
    ("sgd-momentum", "none", "bfloat16"),
    ("sgd", "none", "float32"),
)
"""(optimizer, format of its master weights, format of its states) beside bf16 weights and gradients, one for each K."""


def model_state_bytes(psi: int, K: int = 12, gpus: int = 1) -> int:
    """Bytes of weights, gradients and optimizer states of `psi` parameters on each of `gpus` GPUs that share all of them (ZeRO-3).

    `K`: bytes a parameter of what the optimizer keeps, master weights included. Raises ValueError where no known optimizer keeps as many.
    """
    return predict(_job(psi, _optimizer_of(K), gpus)).states_bytes


def gpus_for_states(psi: int, K: int = 12, gpu_bytes: int = 80 * 10**9) -> int:
    """The fewest GPUs that hold the fully sharded states, and nothing else."""
    least = max(1, model_state_bytes(psi, K) // gpu_bytes)
    return next(gpus for gpus in count(least) if model_state_bytes(psi, K, gpus) <= gpu_bytes)


def _optimizer_of(K: int) -> tuple[str, str, str]:
    keeps = {_kept_by(each): each for each in OPTIMIZERS}
    if K not in keeps:
        raise ValueError(f"K={K}: an optimizer keeps {', '.join(map(str, sorted(keeps)))} bytes a parameter; pass one of these")
    return keeps[K]


def _kept_by(optimizer: tuple[str, str, str]) -> int:
    """Bytes that the optimizer keeps for one parameter."""
    return sum(line.bytes for line in predict(_job(1, optimizer, 1)).ledger if line.category not in WEIGHTS_AND_GRADIENTS)


def _job(psi: int, optimizer: tuple[str, str, str], gpus: int) -> Job:
    name, master, moments = optimizer
    return Job(
        model=Model(parameters=psi),
        precision=Precision(parameters="bfloat16", gradients="bfloat16", master_weights=master, optimizer_states=moments),
        optimizer=Optimizer(name=name),
        parallelism=Parallelism(world_size=gpus, sharding="zero3", shard_degree=gpus),
        framework=Framework(name="textbook"),
    )
