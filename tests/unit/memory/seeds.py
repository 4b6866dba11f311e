"""Helpers of the seed-number tests: textbook jobs, and what one kernel or block keeps."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.memory.builders import category_bytes

from peakgate.memory.blocks import Block
from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import (
    Attention,
    Batch,
    Checkpointing,
    Dropout,
    Framework,
    Gpu,
    Job,
    Model,
    Optimizer,
    Parallelism,
    Precision,
    Transformer,
)
from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.kernels import NO_FORMULA
from peakgate.memory.machine import Machine
from peakgate.memory.meter import Meter
from peakgate.memory.model import describe
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.profiles import profile_of
from peakgate.memory.step_time import Card, relative, sizes_of, step_time
from peakgate.memory.storage import Storage
from peakgate.memory.suggest.space import plan_of as whole_plan
from peakgate.memory.tape import Node, Operand, Parameter, Tape, Tensor

S, B, H, A, LAYERS, VOCABULARY = 2048, 8, 2048, 16, 24, 50257
"""The 1.3B model of Lesson 6, section 4."""

SBH = S * B * H
AS2B = A * S * S * B


def textbook_job(
    *,
    layers: int = LAYERS,
    hidden: int = H,
    heads: int = A,
    vocabulary: int = VOCABULARY,
    micro_batch: int = B,
    sequence: int = S,
    attention: str = "eager",
    dropout: float = 0.1,
    checkpointing: Checkpointing | None = None,
    parallelism: Parallelism | None = None,
    accumulation: int = 1,
    framework: str = "textbook",
    recipe: str = "deepspeed-bf16",
) -> Job:
    """The 1.3B job of Lesson 6, or a variation of it."""
    return Job(
        model=Model(
            transformer=Transformer(
                block="gpt", layers=layers, hidden_size=hidden, heads=heads, vocab_size=vocabulary, tied_embeddings=True
            )
        ),
        batch=Batch(micro_batch_size=micro_batch, sequence_length=sequence, gradient_accumulation_steps=accumulation),
        precision=Precision(recipe=recipe),
        optimizer=Optimizer(name="adamw", implementation="foreach"),
        attention=Attention(implementation=attention),
        dropout=Dropout(attention=dropout, hidden=dropout),
        checkpointing=checkpointing or Checkpointing(mode="none"),
        parallelism=parallelism or Parallelism(),
        framework=Framework(name=framework),
        gpu=Gpu(type="h100-80gb"),
    )


def states(prediction: Prediction) -> int:
    """Bytes of the model states at the peak."""
    return sum(category_bytes(prediction, key) for key in ("parameters", "gradients", "master_weights", "optimizer_states"))


def activations(prediction: Prediction) -> int:
    """Bytes of the saved activations at the peak."""
    return category_bytes(prediction, "activations")


def layer_bytes(**changes: object) -> int:
    """Bytes that autograd keeps for one layer of the textbook job."""
    return predict(textbook_job(**changes)).saved_activation_bytes_per_layer  # type: ignore[arg-type]  # the changes that textbook_job takes


def plan_of(job: Job) -> Plan:
    """The plan of a job."""
    return whole_plan(job, describe(job.model))[0]


def kept_by_kernel(name: str, shapes: dict[str, tuple[int, int, int]], width: int | None = None) -> int:
    """Bytes that one kernel keeps for its backward pass; weights are not counted. `shapes`: (rows, width, bytes an element)."""
    meter = Meter(lambda nbytes: nbytes)
    tape, kernel = Tape(meter, {"act": 2, "rows": 1}), KERNELS[name]
    upstream = Node(NO_FORMULA, {}, (0, 0))
    operands: dict[str, Operand] = {
        key: Tensor(Storage(rows * columns * itemsize, "temporaries", meter), rows, columns, itemsize, upstream)
        for key, (rows, columns, itemsize) in shapes.items()
    }
    rows, columns, itemsize = next(iter(shapes.values()))
    for weight in kernel.weights:
        operands[weight] = Parameter(weight, columns * (width or 1), itemsize, trainable=True)
    tape.apply(kernel, operands, {"y": (rows, width or columns, itemsize)}, "temporaries")
    return sum(storage.nbytes for node in tape.nodes for storage in node.saved.values())


def kept_by_block(block: Block, job: Job) -> int:
    """Bytes that a block of the textbook layer keeps when it runs on a layer's input."""
    plan = plan_of(job)
    meter = Meter(lambda nbytes: nbytes, profile_of(plan.profile).ignored)
    machine = Machine(plan, meter)
    rows, width = machine.dims["T"], machine.dims["h"]
    x = machine.leaf(Tensor(machine.tape.allocate(rows * width * 2), rows, width, 2))
    machine.block(block, [x], None)
    return meter.live


def with_model(job: Job, **changes: object) -> Job:
    """The job with other dimensions."""
    assert job.model.transformer is not None
    return replace(job, model=Model(transformer=replace(job.model.transformer, **changes)))  # type: ignore[arg-type]  # fields of Transformer


FLOPS_ALONE = Card(flops=1e12, memory_bandwidth=1e30, inside_node=1e30, between_nodes=1e30, to_host=1e30)
"""A card on which memory and links cost nothing: times are then FLOP."""


def relative_flops(job: Job, *changes: tuple[str, Value]) -> float:
    """Hardware FLOP of the changed job over those of the job."""
    before, after = (plan_of(each) for each in (job, with_changes(job, changes)))
    times = [step_time(plan, sizes_of(plan), FLOPS_ALONE) for plan in (before, after)]
    return float(relative(*times))
