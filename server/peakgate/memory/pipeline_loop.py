"""What Megatron-LM's pipeline loop names between micro-batches.

megatron/core/pipeline_parallel/schedules.py, forward_backward_pipelining_without_interleaving: `output_tensor_grad` lives until the next
one is received, `input_tensor_grad` until the next one is computed, and the received input as long as the graph that it feeds, which is
named until the next forward pass is over. Outputs are emptied once they are sent (deallocate_output_tensor).
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.machine import Machine
from peakgate.memory.pipeline import Stage
from peakgate.memory.profiles import profile_of
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Tensor


class PipelineLoop:
    """The locals of one stage's loop; none without a pipeline, or where the framework's loop is not counted."""

    def __init__(self, machine: Machine, stage: Stage) -> None:
        self.machine, self.stage = machine, stage
        self.counted = profile_of(machine.plan.profile).pipeline_loop and machine.plan.degrees.pipeline > 1
        self.received: list[Storage] = []
        self.input_gradient: list[Storage] = []
        self.output_gradient: list[Storage] = []

    def sent(self, output: Tensor) -> Tensor:
        """A micro-batch's forward pass is over: its output is sent and emptied, and the one before lets go of its graph."""
        _drop(self.received)
        if not self.counted or self.stage.heads:
            return output
        empty = replace(output, storage=self.machine.tape.allocate(0))
        output.storage.drop()
        return empty

    def received_gradient(self, gradient: Storage) -> None:
        """The gradient of the output arrives."""
        _drop(self.output_gradient)
        if self.counted and not self.stage.heads:
            self.output_gradient = [gradient.hold()]

    def computed_gradient(self) -> None:
        """The backward pass is over: the gradient of the received input, and that input, stay named."""
        _drop(self.input_gradient)
        leaves, self.machine.leaves = self.machine.leaves, []
        if self.counted and not self.stage.embeds:
            self.received = [leaf for _, leaf in leaves]
            self.input_gradient = [gradient for node, _ in leaves for gradient in node.grads.values()]
        else:
            self.received = [storage for node, leaf in leaves for storage in (leaf, *node.grads.values())]
            _drop(self.received)


def _drop(storages: list[Storage]) -> None:
    while storages:
        storages.pop().drop()
