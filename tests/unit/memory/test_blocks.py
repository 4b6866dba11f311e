"""Modules as lists of operations: how their lines are read."""

from __future__ import annotations

import pytest

from peakgate.memory.blocks import Line, parse
from peakgate.memory.choices import CHOICES
from peakgate.memory.families import FAMILIES
from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.library import BLOCKS
from peakgate.memory.profiles import PROFILES


def test_a_block_is_read() -> None:
    """Outputs, the operation and its tag, arguments, a width, and the arguments that die after their one use."""
    block = parse("mlp x labels   # a comment\n  _g, u = linear.gate x -> f\n  drop x\n  return multiply _g u\n")["mlp"]
    assert block.inputs == ("x", "labels")
    assert block.lines == (
        Line(("_g", "u"), "linear", "gate", ("x",), "f", ()),
        Line((), "drop", "", ("x",), "", ()),
        Line(("return",), "multiply", "", ("_g", "u"), "", ("_g",)),
    )


def test_a_line_that_is_none_is_named() -> None:
    """The message says which block, and shows the line."""
    with pytest.raises(ValueError, match=r"block b: cannot read 'y = norm x -> h -> f'"):
        parse("b x\n  y = norm x -> h -> f\n")


def test_every_block_returns() -> None:
    """A module's last line gives its result."""
    assert [block.name for block in BLOCKS.values() if block.lines[-1].outputs != ("return",)] == []


def test_every_name_of_a_block_is_bound_before_it_is_read() -> None:
    """Tables and masks come from the model's forward function; everything else is an input or an earlier result."""
    shared = {"cos", "mask", "positions", "types", "relative", "bias", "cross_bias", "encoded", "cross_mask"}
    for block in BLOCKS.values():
        known = {*block.inputs, *shared}
        for line in block.lines:
            assert set(line.arguments) <= known, f"{block.name}: {line}"
            known = (known - (set(line.arguments) if line.operation == "drop" else set(line.dying))) | set(line.outputs)


def test_every_role_of_a_family_leads_to_a_block_or_a_kernel() -> None:
    """A family's row names what exists."""
    special = {"pass", "leaf", "linear", "always_masked", "none"}
    for name, family in FAMILIES.items():
        for role, target in {**family.roles, **family.decoder}.items():
            assert target in {*BLOCKS, *KERNELS, *special, *family.roles} or target in ("dropout_hidden",), f"{name}: {role} = {target}"


def test_every_rename_of_a_profile_leads_to_a_block_or_a_kernel() -> None:
    """A profile is data, and a misspelt row would be silent."""
    for profile in PROFILES.values():
        assert {target for target in profile.renames.values() if target != "pass"} <= {*BLOCKS, *KERNELS}


def test_every_framework_of_the_contract_has_a_profile() -> None:
    """And a profile of another name could never be asked for."""
    assert set(PROFILES) == set(CHOICES["framework.name"])
