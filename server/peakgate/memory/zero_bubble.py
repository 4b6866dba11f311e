"""Zero-bubble schedules: a micro-batch's weight gradients wait, and with them all that it has saved.

Sources: torch/distributed/pipelining/_backward.py (stage_backward_input runs with retain_graph=True, so nothing that was saved is freed,
and keeps for stage_backward_weight the incoming gradient of each node between a weight and the inputs), schedules.py
(ScheduleInterleavedZeroBubble: rank i computes the weight gradients i passes late).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakgate.memory.tape import Node, Parameter, Tensor


def waiting_bytes(nodes: Sequence[Node], times: Mapping[int, int]) -> int:
    """Incoming gradients of all nodes that have both a trained weight and an input; each is as large as what the node made."""
    made: dict[int, tuple[Node, int]] = {}
    for node in nodes:
        for operand in node.operands.values():
            if isinstance(operand, Tensor) and operand.node is not None and _waits(operand.node):
                made[id(operand.node)] = operand.node, operand.nbytes
    return sum(nbytes * times.get(node.layer[0], 1) for node, nbytes in made.values())


def _waits(node: Node) -> bool:
    operands = node.operands.values()
    trained = any(isinstance(each, Parameter) and each.trainable for each in operands)
    return trained and any(isinstance(each, Tensor) and each.node is not None for each in operands)
