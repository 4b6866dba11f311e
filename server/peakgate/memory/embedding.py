"""What stands in front of the layers of a stack: ids, position tables, masks, and the block that embeds."""

from __future__ import annotations

from peakgate.memory.library import BLOCKS
from peakgate.memory.machine import Machine
from peakgate.memory.profiles import profile_of
from peakgate.memory.roles import REBUILT, padded
from peakgate.memory.shared_tensors import by_kind
from peakgate.memory.stacks import Stack
from peakgate.memory.storage import Storage
from peakgate.memory.tape import INT64, Tensor

INTO_LAYERS = ("bias", "cross_bias")
"""Locals of an embedding block that the layers take as arguments."""

WITHIN = ("types", "relative")
"""Tables of indices that only the embedding's own module names."""


def embedded(machine: Machine, stack: Stack) -> Tensor:
    """Runs the embedding block of a stack; what its model names while the layers run stays."""
    tables = dict(index_tables(machine))
    machine.globals |= tables
    itemsize = machine.dims["act"] if machine.arch.traits.get("inputs") in ("images", "sound", "pictures") and not stack.decodes else INT64
    ids = Tensor(_ids(machine, stack), machine.dims["T"], 1, itemsize)
    x = machine.block(BLOCKS[machine.roles["embed"]], [ids], machine.dims["h"], locals_stay=True)
    ids.storage.drop()
    for name in WITHIN:
        if name in tables:
            machine.globals.pop(name).storage.drop()
    for name in INTO_LAYERS:
        if name in machine.model_locals:
            machine.globals[name] = machine.model_locals.pop(name)
    return x


def _ids(machine: Machine, stack: Stack) -> Storage:
    """The batch is part of the start; a decoder's ids are its labels, shifted (models/t5/modeling_t5.py: _shift_right)."""
    if machine.arch.traits.get("objective") == "contrastive":
        return Storage(0, "temporaries", machine.meter)
    return machine.tape.allocate(INT64 * machine.dims["T"]) if stack.decodes else Storage(0, "temporaries", machine.meter)


def received_tables(machine: Machine, stack: Stack) -> dict[str, Tensor]:
    """What a stage in the middle of two stacks is sent beside the hidden state: the encoder's output, biases."""
    dims, act = machine.dims, machine.dims["act"]
    shapes: dict[str, tuple[int, int]] = {}
    if stack.decodes:
        shapes["encoded"] = (machine.plan.micro_batch * machine.plan.sequence, dims["h"])
    if dims.get("buckets"):
        shapes["bias"] = (dims["square"], dims["a"])
    if dims.get("buckets") and stack.decodes:
        shapes["cross_bias"] = (dims["rows.cross"], dims["a"])
    return {name: Tensor(machine.tape.allocate(rows * width * act), rows, width, act) for name, (rows, width) in shapes.items()}


def index_tables(machine: Machine) -> dict[str, Tensor]:
    """Indices into learned tables. `position_ids`: one row for all sequences, a row a token, or a slice of a buffer."""
    dims, counted = machine.dims, profile_of(machine.plan.profile).tables
    kind = machine.trait("position_ids", "token" if "positions_per_token" in machine.arch.flags else "row")
    sequence = dims["T"] // machine.plan.micro_batch if machine.arch.encoder else machine.plan.sequence
    rows = dims["T"] if kind == "token" else sequence
    sizes = {"positions": (rows if counted and kind in ("row", "token") else 0, rows)}
    if dims.get("types"):  # BertEmbeddings: one gathered row, expanded to the batch
        sizes["types"] = (sequence, dims["T"])
    if dims.get("buckets"):
        sizes["relative"] = (dims["square"], dims["square"])
    return {name: Tensor(machine.tape.allocate(INT64 * stored), rows, 1, INT64) for name, (stored, rows) in sizes.items()}


def _padding_masks(machine: Machine) -> dict[str, int]:
    """One mask a sequence: boolean in sdpa, additive in eager attention (masking_utils.py: create_bidirectional_mask)."""
    dims, itemsize = machine.dims, machine.dims["act"] if machine.plan.attention == "eager" else 1
    if machine.kind == "decoder":
        return {"cross_mask": machine.plan.micro_batch * dims["rows.cross"] * itemsize}
    return {"mask": machine.plan.micro_batch * dims["square"] * itemsize}


def mask_width(machine: Machine, name: str, size: int) -> int:
    """Elements of a shared tensor for one sequence."""
    return {"mask": machine.dims["square"], "cross_mask": machine.dims.get("rows.cross", 0)}.get(name, size)


def global_sizes(machine: Machine) -> dict[str, int]:
    """Bytes of what is made once per forward pass and shared by the layers: the additive mask of eager attention, the rope tables."""
    dims, plan, arch = machine.dims, machine.plan, machine.arch
    if not profile_of(plan.profile).tables:
        return dict.fromkeys(("mask", "cross_mask", "cos"), 0)
    out: dict[str, int] = {}
    square = dims["square"]
    if plan.attention == "eager":
        if machine.roles["mask_scores"] != "pass":
            out["mask"] = plan.micro_batch * square * (1 if "boolean_mask" in arch.flags else dims["act"]) * dims.get("masks", 1)
    elif any(_reads_mask(roles["core"]) for roles in machine.kinds.values()):
        out["mask"] = square * (plan.micro_batch if plan.builds_mask else 1)  # boolean; one a sequence where packing is looked for
    if padded(plan):
        out |= _padding_masks(machine)
    alibi = {"alibi_of_batch": plan.micro_batch * plan.sequence * dims["act"], "alibi_table": 4 * arch.positions}
    out["alibi"] = dims["a"] * sum(size for flag, size in alibi.items() if flag in arch.flags)
    out["cos"] = 0 if profile_of(plan.profile).resident_rope else 2 * plan.sequence * arch.dims["rope"] * dims["act"]
    return by_kind(out, arch, plan)


def _reads_mask(core: str) -> bool:
    block = core.removeprefix(REBUILT)
    return block.startswith("core_efficient") and any("mask" in line.arguments for line in BLOCKS[block].lines)
