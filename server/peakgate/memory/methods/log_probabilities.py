"""Log-probabilities of given tokens, one sequence at a time.

Source: TRL 1.0 trainer/utils.py, selective_log_softmax: 16-bit logits go through log_softmax row by row, whose outputs autograd keeps; of
fp32 logits the gathered ones minus their log-sum-exp, which keep the logits themselves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from peakgate.memory.kernels import Kernel, parse
from peakgate.memory.losses_chunks import views
from peakgate.memory.machine import Machine
from peakgate.memory.tape import FLOAT32, INT64, Tensor

ENTROPY_CHUNK = 128
"""Rows at a time (TRL 1.0 trainer/utils.py: entropy_from_logits, chunk_size=128)."""


@lru_cache(maxsize=256)
def _stack(count: int) -> Kernel:
    """aten stack, cat: one new tensor; the gradients are views of its own."""
    names = [f"x{i}" for i in range(count)]
    return parse(f"stack({','.join(names)}) | y=out | {'; '.join(f'{name}: g{name}~gy' for name in names)}")["stack"]


def stacked(machine: Machine, parts: list[Tensor]) -> Tensor:
    """The parts one below the other; lets go of them."""
    shape = (sum(part.rows for part in parts), parts[0].width, parts[0].itemsize)
    operands = {f"x{i}": part for i, part in enumerate(parts)}
    result = machine.tape.apply(_stack(len(parts)), {**operands}, {"y": shape}, machine.category)["y"]
    for part in parts:
        part.storage.drop()
    return result


def labels_of(machine: Machine, rows: int) -> Tensor:
    """Ids of eight bytes."""
    return Tensor(machine.tape.allocate(INT64 * rows), rows, 1, INT64)


def shifted(machine: Machine, logits: Tensor, *, copied: bool) -> Tensor:
    """`logits[:, :-1]`, and its contiguous copy as soon as there is more than one sequence; lets go of nothing."""
    positions = max(1, logits.rows // machine.plan.micro_batch - 1)
    (view,) = machine.call("slice", "", [logits], None)
    view = replace(view, rows=machine.plan.micro_batch * positions)
    (copy,) = machine.call("contiguous" if copied and machine.plan.micro_batch > 1 else "pass", "", [view], None)
    view.storage.drop()
    return copy


def log_probabilities(machine: Machine, logits: Tensor, labels: Tensor) -> Tensor:
    """Of each label under its logits: one number a token."""
    return (_of_float32 if logits.itemsize == FLOAT32 else _of_half)(machine, logits, labels)


def _of_float32(machine: Machine, logits: Tensor, labels: Tensor) -> Tensor:
    (picked,) = machine.call("pick_label", "", [logits, labels], 1)
    rows = sequences(machine, logits)
    sums = stacked(machine, [machine.call("log_sum_exp", "", [row], 1)[0] for row in rows])
    (result,) = machine.call("subtract", "", [picked, sums], 1)
    for tensor in (picked, sums, *rows):
        tensor.storage.drop()
    return result


def _of_half(machine: Machine, logits: Tensor, labels: Tensor) -> Tensor:
    rows = sequences(machine, logits)
    ids = replace(labels, rows=labels.rows // len(rows))
    result = stacked(machine, [_of_row(machine, row, ids) for row in rows])
    for row in rows:
        row.storage.drop()
    return result


def sequences(machine: Machine, x: Tensor) -> list[Tensor]:
    """One view a sequence (unbind: its gradient is one stack)."""
    count = machine.plan.micro_batch
    return views(machine, x, [x.rows // count] * count)


def _of_row(machine: Machine, row: Tensor, labels: Tensor) -> Tensor:
    (all_of_them,) = machine.call("log_softmax", "", [row], None)
    (picked,) = machine.call("pick_label", "", [all_of_them, labels], 1)
    all_of_them.storage.drop()
    return picked


def entropies(machine: Machine, logits: Tensor) -> None:
    """What a trainer reports of the logits without a graph: three tensors of one chunk at a time."""
    tape, recording = machine.tape, machine.tape.recording
    chunk = min(ENTROPY_CHUNK, logits.rows) * logits.width * logits.itemsize
    tape.recording = False
    for storage in [tape.allocate(chunk, machine.category) for _ in range(3)]:  # log_softmax, its exponential, their product
        storage.drop()
    tape.recording = recording


def passing_copy(machine: Machine, nbytes: int) -> None:
    """A copy that a report makes and lets go at once."""
    machine.tape.allocate(nbytes, machine.category).drop()
