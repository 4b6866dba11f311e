"""Rows of a kernel table: how they are read, and what a row that cannot be read says."""

from __future__ import annotations

import pytest

from peakgate.memory import profiles
from peakgate.memory.kernel_table import KERNELS, TABLE
from peakgate.memory.kernels import Rule, Size, Step, parse


def test_a_row_is_read() -> None:
    """Outputs, views, by-products that stay, frees, sizes in other formats and fractions, and what each gradient reads and runs."""
    (kernel,) = parse("k(x,q) | y=x:4/2 m!=x:1 v~x t=q*tensor -t | w,b(x,m): t=x gw=w -t; q: gq~gy   # a comment").values()
    assert kernel.inputs == ("x", "q")
    assert kernel.weights == ("w", "b")
    assert kernel.forward == (
        Step("y", Size("x", 4, "", 2)),
        Step("m", Size("x", 1), kept=True),
        Step("v", Size("x"), alias=True),
        Step("t", Size("q", None, "tensor")),
        Step("t", Size(""), free=True),
    )
    assert kernel.rules == (
        Rule(("w", "b"), ("x", "m"), (Step("t", Size("x")), Step("gw", Size("w")), Step("t", Size(""), free=True))),
        Rule(("q",), (), (Step("gq", Size("gy"), alias=True),)),
    )


def test_a_kernel_without_named_inputs_has_one() -> None:
    """Most kernels read one tensor, x."""
    assert parse("k | y=x | x: gx=x")["k"].inputs == ("x",)


def test_a_format_may_be_a_dimension() -> None:
    """`act` is the width of the compute format, which the job decides."""
    assert parse("k | y=x:act | x: gx=x")["k"].forward == (Step("y", Size("x", "act")),)


@pytest.mark.parametrize("row", ["k | y=x", "k | y=x | x: gx=x | more", "k | y=x | gx=x", "k"])
def test_a_row_with_other_parts_is_refused(row: str) -> None:
    """A row has a name, a forward part and gradients that name their targets."""
    with pytest.raises(ValueError, match="unpack"):
        parse(row)


@pytest.mark.parametrize("step", ["y==x", "y=", "=x", "y=x:4/0x", "y x="])
def test_a_step_that_cannot_be_read_is_named(step: str) -> None:
    """The message shows the word and what is wanted instead."""
    with pytest.raises(ValueError, match=r"kernel step .*: want name=operand, name~operand or -name"):
        parse(f"k | {step} | x: gx=x")


def test_comments_and_empty_lines_are_no_kernels() -> None:
    """The table is written for people."""
    assert parse("\n# ---- a heading\n\n") == {}


def test_every_row_of_the_table_has_its_own_name() -> None:
    """A second row of a name would silently replace the first."""
    lines = [line.split("#", 1)[0] for line in TABLE.splitlines()]
    own = parse(TABLE)
    assert len(own) == len([line for line in lines if line.strip()])
    assert own.keys().isdisjoint(profiles.KERNELS)


def test_every_gradient_reads_what_the_kernel_has() -> None:
    """A rule reads inputs, weights, or what forward made; a misspelt name would keep nothing."""
    for kernel in KERNELS.values():
        made = {step.name for step in kernel.forward if not step.free}
        for rule in kernel.rules:
            assert set(rule.targets) <= {*kernel.inputs, *kernel.weights}, kernel.name
            assert set(rule.reads) <= {*kernel.inputs, *kernel.weights, *made}, kernel.name


def test_a_by_product_that_a_gradient_reads_is_kept() -> None:
    """What is neither the output nor marked is gone when the kernel returns, so no rule may read it."""
    for kernel in KERNELS.values():
        lasting = {s.name for s in kernel.forward if s.kept or s.alias or s.name in ("y", "i")}
        for rule in kernel.rules:
            assert {name for name in rule.reads if name not in (*kernel.inputs, *kernel.weights)} <= lasting, kernel.name
