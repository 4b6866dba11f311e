"""What torch's pipeline stages hold of other micro-batches beside their graphs.

Sources: torch/distributed/pipelining/stage.py. A buffer for each micro-batch's input and for its output's gradient is made once and stays
(args_recv_info, grad_recv_info); the gradient of each input stays on its buffer until the next step (clear_runtime_states); outputs stay
in fwd_cache until their backward pass; the last stage keeps the output of every micro-batch for the caller (output_chunks), which
torchtitan switches off from e5ef99aab on (return_outputs=False).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.parallel import rank_dims
from peakgate.memory.prediction import LedgerLine

if TYPE_CHECKING:
    from peakgate.memory.pipeline import Stage
    from peakgate.memory.plan import Plan
    from peakgate.memory.weights import Weight


def resident(plan: Plan, stage: Stage, _: list[Weight], *, keeps_outputs: bool = True) -> list[LedgerLine]:
    """At the last forward pass of the steady phase; what the walk of one micro-batch and those in flight hold is not counted again."""
    if plan.degrees.pipeline == 1:
        return []
    dims, held = rank_dims(plan), -(-stage.in_flight // stage.chunks)
    hidden = dims["Ts"] * dims["h"] * dims["act"]
    receives, sends = stage.chunks - stage.embeds, stage.chunks - stage.heads
    done = max(0, plan.accumulation - held)
    logits = dims["T"] * dims["V"] * dims["act"] * (plan.accumulation - 1) if stage.heads and keeps_outputs else 0
    return [
        LedgerLine(category="communication", item="received inputs and their gradients", bytes=2 * done * receives * hidden),
        LedgerLine(category="communication", item="received gradients", bytes=(plan.accumulation - 1) * sends * hidden),
        LedgerLine(category="communication", item="outputs in flight", bytes=(held - 1) * sends * hidden),
        LedgerLine(category="logits", item="outputs of the last stage", bytes=logits),
    ]
