"""The loss of a student against its teacher.

Source: TRL 1.0 experimental/gkd/gkd_trainer.py (compute_loss, generalized_jsd_loss with its default beta of 0.5): the divergence of both
from their mixture, every tensor as large as the logits; torch/nn/functional.py kl_div with log_target: `exp(target) * (target - input)`.
"""

from __future__ import annotations

from peakgate.memory.library import KERNELS
from peakgate.memory.machine import Machine
from peakgate.memory.methods.log_probabilities import shifted, stacked
from peakgate.memory.methods.outputs import cache_bytes, logits_of
from peakgate.memory.tape import Tensor

TEACHER = "teacher"


def distill(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """Student first, then the teacher; the logits of both, and what was made of them, are named until the loss is there."""
    student = logits_of(machine, x)
    machine.meter.enter("loss")
    named = [student, _own_cache(machine)]
    taught = machine.companions[TEACHER]() if TEACHER in machine.companions else []
    named += taught
    tempered = [_tempered(machine, logits) for logits in (student, (taught or named)[0])]
    named += tempered
    own, others = (machine.call("log_softmax", "", [each], None)[0] for each in tempered)
    mixture = _mixture(machine, own, others)
    to_teacher, to_student = (_divergence(machine, mixture, target) for target in (others, own))
    named += [own, others, mixture, to_teacher, to_student]
    loss = _mean(machine, to_teacher, to_student)
    for tensor in named:
        tensor.storage.drop()
    return loss, None


def _own_cache(machine: Machine) -> Tensor:
    """The student's keys and values, where its attention keeps copies of them for every head instead."""
    plan, dims = machine.plan, machine.dims
    aliased = dims["n"] == dims["a"] or machine.roles["core"].startswith("core_flash") or plan.checkpointing != "none"
    nbytes = 0 if aliased else cache_bytes(plan)
    return Tensor(machine.tape.allocate(nbytes, "activations"), 1, nbytes, 1)


def _tempered(machine: Machine, logits: Tensor) -> Tensor:
    view = shifted(machine, logits, copied=False)
    (scaled,) = machine.call("scale", "", [view], None)
    view.storage.drop()
    return scaled


def _mixture(machine: Machine, own: Tensor, others: Tensor) -> Tensor:
    """The log-sum-exp of both, each with the logarithm of its share."""
    both = stacked(machine, [machine.call("add_small", "", [each], None)[0] for each in (own, others)])
    shape = {"y": (own.rows, own.width, own.itemsize)}
    mixture = machine.tape.apply(KERNELS["log_sum_exp"], {"x": both}, shape, machine.category)["y"]
    both.storage.drop()
    return mixture


def _divergence(machine: Machine, mixture: Tensor, target: Tensor) -> Tensor:
    (difference,) = machine.call("subtract", "", [target, mixture], None)
    (weights,) = machine.call("exponential", "", [target], None)
    (product,) = machine.call("multiply", "", [weights, difference], None)
    for tensor in (difference, weights):
        tensor.storage.drop()
    return product


def _mean(machine: Machine, to_teacher: Tensor, to_student: Tensor) -> Tensor:
    """Both weighed and added, without the tokens of the prompt."""
    weighed = [machine.call("scale", "", [each], None)[0] for each in (to_teacher, to_student)]
    (whole,) = machine.call("add", "", weighed, None)
    for tensor in weighed:
        tensor.storage.drop()
    (answers,) = machine.call("pick_masked", "", [whole], None)
    whole.storage.drop()
    (loss,) = machine.call("sum_all", "", [answers], 1)
    answers.storage.drop()
    return loss


LOSSES = {"distill": distill}
"""By the name of the method."""
