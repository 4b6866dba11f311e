"""The head on pieces of the hidden state, as views that one node joins again."""

from __future__ import annotations

from functools import lru_cache

from peakgate.memory.kernels import Kernel, parse
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.tape import INT64, Tensor


@lru_cache(maxsize=256)
def _split(count: int) -> Kernel:
    """aten split: views; its gradient is one concatenation (derivatives.yaml: split_backward)."""
    outputs = " ".join(f"y{i}~x" for i in range(count))
    return parse(f"split_rows | {outputs} | x: gx=x")["split_rows"]


def lengths_of_chunks(total_length: int, chunk: int) -> list[int]:
    """A length in chunks, of which the last is the rest (torch.split: one even of nothing); one comparison a chunk, so that a compiled step
    knows how many."""
    out = [min(chunk, total_length)]
    start = chunk
    while start < total_length:
        out.append(min(chunk, total_length - start))
        start += chunk
    return out


def pieces(machine: Machine, x: Tensor, positions: list[int]) -> list[Tensor]:
    """Views of `positions` each along the sequence."""
    return views(machine, x, [machine.plan.micro_batch * size for size in positions])


def views(machine: Machine, x: Tensor, rows: list[int]) -> list[Tensor]:
    """Views of so many rows each."""
    shapes = {f"y{i}": (size, x.width, x.itemsize) for i, size in enumerate(rows)}
    return list(machine.tape.apply(_split(len(rows)), {"x": x}, shapes, "temporaries").values())


def heads(machine: Machine, parts: list[Tensor], *, copied: bool = False) -> list[Tensor]:
    """Logits of each part by the same head; `copied`: a part that is not contiguous is folded for the product."""
    cursor = machine.cursor.get(ENDS, 0)
    logits = []
    for part in parts:
        machine.cursor[ENDS] = cursor
        (folded,) = machine.call("contiguous" if copied else "pass", "", [part], None)
        (each,) = machine.call("head", "head", [folded], machine.dims["V"])
        folded.storage.drop()
        part.storage.drop()
        logits.append(each)
    return logits


def labels_of(machine: Machine, rows: int) -> Tensor:
    """Ids of eight bytes, one a row."""
    return Tensor(machine.tape.allocate(INT64 * rows), rows, 1, INT64)


def cross_entropy(machine: Machine, logits: Tensor) -> Tensor:
    """torch cross_entropy: log-probabilities in the format of the logits, kept, and labels, kept."""
    labels = labels_of(machine, logits.rows)
    (log_probabilities,) = machine.call("log_softmax", "", [logits], None)
    (loss,) = machine.call("nll", "", [log_probabilities, labels], None)
    log_probabilities.storage.drop()
    labels.storage.drop()
    return loss


def total(machine: Machine, losses: list[Tensor]) -> Tensor:
    """Their sum."""
    result = losses[0]
    for each in losses[1:]:
        (summed,) = machine.call("add", "", [result, each], 1)
        result.storage.drop()
        each.storage.drop()
        result = summed
    return result
