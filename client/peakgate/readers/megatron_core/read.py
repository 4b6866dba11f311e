"""All that settings of Megatron Core say of a job."""

from __future__ import annotations

from peakgate.readers.megatron_core.model import read_model
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.placement import read_placement
from peakgate.readers.megatron_core.routing import read_dispatch
from peakgate.readers.megatron_core.states import read_states
from peakgate.readers.megatron_core.step import read_step
from peakgate.readers.megatron_core.unread import read_unread


def read_core(options: Options, kind: str, world: int | None, *, model: bool = True, states: bool = True) -> None:
    """States every field. `kind`: gpt bert t5 hybrid; `world`: GPUs in all, where known.

    `model` and `states` are false where they are the caller's.
    """
    if model:
        read_model(options, kind)
    read_placement(options, kind, world)
    read_dispatch(options)
    if states:
        read_states(options, world)
    read_step(options)
    read_unread(options)
