"""Passes without a graph: another model's beside the policy, or an evaluation."""

from __future__ import annotations

from peakgate.memory.forward import ForwardPass
from peakgate.memory.methods.outputs import logits_of
from peakgate.memory.tape import Tensor


def infer(step: ForwardPass, cache_bytes: int = 0, *, head: bool = True) -> list[Tensor]:
    """The model's output, first the logits, each held once; `cache_bytes`: keys and values that it names as well.

    Without its `head` the first is the last hidden state.
    """
    machine, tape = step.machine, step.machine.tape
    tape.recording, machine.cursor = False, {}
    cache = Tensor(tape.allocate(cache_bytes, "activations"), 1, cache_bytes, 1)
    step.sharding.begin_inference()
    x = step.forward_layers()
    machine.category = "logits"
    output = logits_of(machine, x) if head else x
    machine.category = "temporaries"
    _end(step)
    return [output, cache]


def evaluate(step: ForwardPass) -> None:
    """A pass with its loss, of which nothing stays."""
    machine = step.machine
    machine.tape.recording, machine.cursor = False, {}
    step.sharding.begin_inference()
    loss, logits = step.head_and_loss(step.forward_layers())
    for tensor in [loss, *([logits] if logits and step.plan.keep_logits else [])]:
        tensor.storage.drop()
    _end(step)


def _end(step: ForwardPass) -> None:
    step.drop_outputs()
    step.drop_copies()
    step.sharding.end_inference()
