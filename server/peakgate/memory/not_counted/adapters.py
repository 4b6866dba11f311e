"""What is not counted of adapters."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.choices import HUGGING_FACE
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.job import Job
from peakgate.memory.plan import LoraPlan, Plan


def of_adapters(_: Job, plan: Plan) -> Iterator[str]:
    """DoRA beside peft's, and products of 8-bit weights that are not bitsandbytes'."""
    lora = plan.lora
    if lora and lora.dora:
        yield from _of_dora(plan, lora)
    if lora and lora.base_dtype == "int8" and plan.framework not in HUGGING_FACE:
        yield f"lora.base_dtype: products of 8-bit weights are counted as peft and bitsandbytes run them; {plan.framework} has its own"


def _of_dora(plan: Plan, lora: LoraPlan) -> Iterator[str]:
    """DoRA is counted as peft runs it on whole weights; experts and joined matrices of other libraries have no magnitudes."""
    if plan.formats.autocast or lora.base_dtype in QUANTISED:
        yield "lora.method: DoRA's norms under autocast, or of quantised weights, are not counted"
    if plan.framework not in HUGGING_FACE:
        yield f"lora.method: DoRA is counted as peft runs it; {plan.framework} has its own"
