"""What lives all step long on a rank, line by line."""

from __future__ import annotations

from peakgate.memory.cuda_graphs import static_bytes
from peakgate.memory.methods.companions import resident_lines as companion_lines
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles import profile_of
from peakgate.memory.states import States
from peakgate.memory.weights import Weight


def resident_lines(plan: Plan, stage: Stage, states: States, weights: list[Weight], tables: int) -> list[LedgerLine]:
    """What lives all step long; `tables`: the input batch and position tables."""
    profile = profile_of(plan.profile)
    buckets = 0
    if plan.degrees.sharding == "ddp" and not plan.formats.resident_gradients and plan.profile != "textbook":
        buckets = states.trained_bytes  # torch/nn/parallel/distributed.py: buckets as large as all gradients, from construction on
    lines = [
        LedgerLine(category="parameters", item="weights", bytes=states.parameters),
        LedgerLine(category="gradients", item="gradient buffers", bytes=0 if plan.in_backward else states.gradients),
        LedgerLine(category="master_weights", item="master weights", bytes=states.master_weights),
        LedgerLine(category="optimizer_states", item=f"{plan.optimizer} states", bytes=states.optimizer_states),
        LedgerLine(category="activations", item="input batch and position tables", bytes=tables),
        LedgerLine(category="temporaries", item="cuBLAS workspace", bytes=plan.workspace_bytes * profile.workspaces),
        LedgerLine(category="activations", item="static buffers of CUDA graphs", bytes=static_bytes(plan)),
        LedgerLine(category="communication", item="DDP gradient buckets", bytes=buckets),
        *(profile.resident(plan, stage, weights) if profile.resident else ()),
        *companion_lines(plan),
        LedgerLine(category="runtime", item="generation engine", bytes=0 if plan.engine_sleeps else plan.engine_bytes),
    ]
    return [line for line in lines if line.bytes]
