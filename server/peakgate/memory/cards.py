"""Which cards of the catalogue can run a job at all, whatever their memory: kernels need a compute capability, NCCL whole GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.memory.catalog.gpus import GPUS, GpuSpec
from peakgate.memory.check import world_of
from peakgate.memory.defaults import default_of
from peakgate.memory.job import Job
from peakgate.memory.recipes import formats_of

Capability = tuple[int, int]

OLDEST: Capability = (0, 0)
"""What a job needs that asks for nothing."""

BFLOAT16: Capability = (8, 0)
"""bfloat16 products in hardware (torch/cuda/__init__.py is_bf16_supported; transformers' trainer refuses bf16 below)."""

FLASH: Capability = (8, 0)
"""FlashAttention-2: Ampere and newer (Dao-AILab/flash-attention README)."""

INT8_BASE: Capability = (7, 5)
"""LLM.int8() products: Turing and newer (bitsandbytes README)."""

FLOAT8: dict[str, Capability] = {"delayed": (8, 9), "current": (8, 9), "blockwise": (9, 0), "mxfp8": (10, 0), "nvfp4": (10, 0)}
"""8-bit products by recipe (Transformer Engine pytorch/quantization.py: check_fp8_support and its siblings; torchao: from 8.9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU or MIG slice by its catalogue name. Cards of one `kind` have the same kernels and workspaces: a job needs the same on all."""

    name: str
    usable_bytes: int
    kind: Capability = OLDEST
    all_of_one: bool = False
    """A slice that leaves nothing of its card to another one: nobody cuts a card for it."""


def cards_for(job: Job) -> tuple[Card, ...]:
    """The cards that can run the job, smallest first; a slice only for a job of one GPU. `job` has passed `check`."""
    least, one_gpu = least_capability(job), world_of(job) == 1
    specs = (spec for spec in GPUS.values() if spec.compute_capability >= least and (one_gpu or "/" not in spec.name))
    ordered = sorted(specs, key=lambda spec: (spec.usable_bytes, spec.name))
    return tuple(map(_card, ordered))


def _card(spec: GpuSpec) -> Card:
    name, _, profile = spec.name.partition("/")
    return Card(
        name=spec.name,
        usable_bytes=spec.usable_bytes,
        kind=spec.compute_capability,
        all_of_one=bool(profile) and spec.dense_bf16_flops == GPUS[name].dense_bf16_flops,
    )


def least_capability(job: Job) -> Capability:
    """The compute capability that the job's number formats and kernels need."""
    return max((OLDEST, *_needs(job)))


def _needs(job: Job) -> Iterator[Capability]:
    framework = job.framework.name or default_of("*", "framework.name").value
    formats = formats_of(job.precision, job.precision.recipe or default_of(framework, "precision.recipe").value)
    if "bfloat16" in (formats.parameters, formats.gradients, formats.compute):
        yield BFLOAT16
    if (job.attention.implementation or default_of(framework, "attention.implementation").value) == "flash":
        yield FLASH
    if job.lora is not None and job.lora.base_dtype == "int8":
        yield INT8_BASE
    if job.precision.compute == "float8" or job.precision.fp8 is not None:
        recipe = job.precision.fp8.recipe if job.precision.fp8 else None
        yield FLOAT8[recipe or default_of("*", "precision.fp8.recipe").value]
