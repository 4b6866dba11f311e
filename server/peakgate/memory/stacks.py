"""The stacks of a model, their layers on one stage and their sizes: one stack, or an encoder in front of a decoder.

An encoder and its decoder differ in the length of their sequences, and may differ in the width of the feed-forward part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.lengths import patches
from peakgate.memory.parallel import rank_dims
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Plan
from peakgate.memory.stretches import Stretch, stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The stretches of one stack on a stage. `encodes`: a decoder follows that reads its output."""

    kind: str
    stretches: tuple[Stretch, ...]
    encodes: bool = False
    decodes: bool = False


def stacks_of(plan: Plan, stage: Stage, *, each: bool) -> list[Stack]:
    """The stacks of a stage, in order; stretches are numbered through."""
    arch = plan.architecture
    if not arch.encoder:
        return [Stack(kind=arch.pattern[-1], stretches=tuple(stretches(plan, stage.layers, each=each, start=stage.start)))]
    encoding = encoder_layers_of(plan, stage)
    encoder = stretches(replace(plan, architecture=replace(arch, pattern=arch.encoder)), encoding, each=each, start=stage.start)
    decoder = stretches(plan, stage.layers - encoding, each=each, start=stage.start + encoding)
    out = [Stack(kind=arch.encoder[-1], stretches=tuple(encoder), encodes=True)] if encoding else []
    if stage.layers > encoding or stage.heads:
        renumbered = tuple(replace(s, number=s.number + len(encoder)) for s in decoder)
        out.append(Stack(kind=arch.pattern[-1], stretches=renumbered, decodes=True))
    return out


def encoder_layers_of(plan: Plan, stage: Stage) -> int:
    """Layers of the encoder on a stage: the first ones of the model."""
    dims = plan.architecture.dims
    before = sum(s.layers for s in stages(plan.degrees, dims["L"], 1)[: stage.number])
    return max(0, min(stage.layers, dims["encoder_layers"] - before))


def sizes_of(plan: Plan, kind: str) -> dict[str, int]:
    """Sizes on one rank in the layers of `kind` (`parallel.rank_dims`), with the rows of what is no token."""
    arch = plan.architecture
    if not arch.encoder:
        return _with_rows(rank_dims(plan), plan)
    if "vision_h" in arch.dims:
        return _tower(plan, kind)
    encoder = rank_dims(plan)
    if kind in arch.encoder:
        share = max(1, encoder["encoder_f"] // plan.degrees.tensor)
        return _with_rows(encoder | {"f": share}, plan)
    decoder = rank_dims(replace(plan, sequence=plan.target))
    cross = {"scores_cross": encoder["scores"], "rows.cross": plan.target * plan.sequence, "square_cross": plan.target * plan.sequence}
    return _with_rows(decoder | cross, replace(plan, sequence=plan.target))


def _tower(plan: Plan, kind: str) -> dict[str, int]:
    """Each tower has sizes of its own; the text's are those of the architecture."""
    arch = plan.architecture
    if kind not in arch.encoder:
        text = replace(plan, sequence=plan.target, image=0)
        return _with_rows(rank_dims(text), text)
    h, a = arch.dims["vision_h"], arch.dims["vision_a"]
    own = {"h": h, "q": h, "kv": h, "a": a, "n": a, "d": h // a, "f": arch.dims["vision_f"], "qkv": 3 * h}
    return _with_rows(rank_dims(replace(plan, architecture=replace(arch, dims={**arch.dims, **own}))), plan)


def _with_rows(dims: dict[str, int], plan: Plan) -> dict[str, int]:
    """`rows.<tag>`: rows of an operation's output that is not as long as its input; and sizes that follow from the batch."""
    square, tokens, sequences = plan.sequence * plan.sequence, dims["T"], plan.micro_batch
    rows = {
        "rows.patches": tokens - sequences,
        "rows.cls": tokens,
        "rows.first": sequences,
        "rows.conv1": 2 * tokens,
        "rows.conv2": tokens,
        "rows.buckets": square,
        "rows.masked": sequences * square,
        "rows.cross_masked": sequences * dims.get("rows.cross", 0),
    }
    own = {"square": square, "patches": dims.get("channels", 0) * plan.patch**2, "conv1": 3 * dims.get("mel", 0), "conv2": 3 * dims["h"]}
    if plan.image:
        own["positions"] = patches(plan.image, plan.patch)
    return dims | rows | own | {"sources": dims.get("sources") or plan.sequence}
