"""What autograd keeps for one layer."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.forward import ForwardPass
from peakgate.memory.meter import Meter, exact
from peakgate.memory.pipeline import Stage
from peakgate.memory.plain import run as plain_network
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of


def saved_bytes_per_layer(plan: Plan, meter: Meter | None = None) -> int:
    """What autograd keeps for one layer before checkpointing: the mean over the repeating pattern; of two stacks a layer each."""
    plain = replace(plan, checkpointing="none", degrees=replace(plan.degrees, sharding="none", pipeline=1), keep_logits=False)
    arch, pattern = plain.architecture, len(plain.architecture.pattern)
    encoding = min(2, arch.dims.get("encoder_layers", 0))
    decoding = min(2, max(1, (arch.dims["L"] - arch.dims.get("encoder_layers", 0)) // pattern)) * pattern
    if encoding:
        sizes = {**arch.dims, "L": encoding + decoding, "encoder_layers": encoding}
        plain = replace(plain, architecture=replace(arch, dims=sizes))
    layers = encoding + decoding
    stage = Stage(number=0, layers=layers, embeds=True, heads=False, in_flight=1, chunks=1, start=arch.leading)
    step = ForwardPass(plain, stage, meter or Meter(exact, profile_of(plan.profile).ignored), each=False)
    step.machine.tape.nodes = []
    step.sharding.begin()
    step.forward_layers()
    network = plan.architecture.network
    return plain_network.saved_bytes(step.machine) // len(network.layers) if network else sum(step.saved_per_layer.values())
