"""What a kernel is: what it allocates, and for each gradient what it keeps and what computing it allocates.

A row of a kernel table reads `name(inputs) | forward | gradients`:

- forward: `y=x` allocates the output y as large as the operand x; `y~x` is a view of it, `y~x*tensor` one as wide as that
  dimension; `t=x:4/2` has half as many elements of 4 bytes; `g=x*tensor` is as many times as large as the named dimension says;
  `-t` frees. What is neither an output nor marked `!` is gone when the kernel returns. `out` is the output's own shape; a name that
  is no operand is one of the layer's dimensions.
- gradients: `x(a,b): t=x gx=x` means: while x needs a gradient, a and b are kept; computing it allocates t, then gx;
  temporaries live until the formula is done. `gx~gy` hands the incoming gradient on. Nothing at all: no gradient flows through it.
  Steps behind `>` are the engine's own (engine.cpp, validate_outputs: gradients are cast and summed to what they belong to).

Source of the rules: pytorch tools/autograd/derivatives.yaml and torch/csrc/autograd/FunctionsManual.cpp; the order inside a
node follows the generated code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Size:
    """As many elements as `name` has, times the dimension `times`, over `over`, of `itemsize` bytes (None: the operand's own)."""

    name: str
    itemsize: int | str | None = None
    times: str = ""
    over: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One allocation, view or free."""

    name: str
    size: Size
    alias: bool = False
    free: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """The gradient of `targets` reads `reads` and runs `steps`."""

    targets: tuple[str, ...]
    reads: tuple[str, ...]
    steps: tuple[Step, ...]
    late: tuple[Step, ...] = ()
    """What the engine does to the results afterwards: a checkpoint's rebuilt tensors are gone by then."""


@dataclass(frozen=True, slots=True)
class Formula:
    """The rules of a kernel that run together: what they read, their steps, and the operands that they have gradients for."""

    reads: tuple[str, ...]
    steps: tuple[Step, ...]
    late: tuple[Step, ...]
    targets: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Bytes:
    """A size without a tensor: what a kernel's row calls `out`, and incoming gradients."""

    rows: int
    width: int
    itemsize: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of a kernel table."""

    name: str
    forward: tuple[Step, ...]
    rules: tuple[Rule, ...]
    inputs: tuple[str, ...] = ("x",)
    weights: tuple[str, ...] = ()
    formulas: dict[tuple[int, ...], Formula] = field(default_factory=dict, init=False, compare=False, repr=False)
    outputs: dict[int, tuple[Step, ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def formula(self, active: tuple[int, ...]) -> Formula:
        """The rules at these places, together."""
        known = self.formulas.get(active)
        if known is None:
            known = self.formulas[active] = _together([self.rules[i] for i in active])
        return known

    def made(self, outputs: int) -> tuple[Step, ...]:
        """The steps that make so many outputs; a single one is called y."""
        known = self.outputs.get(outputs)
        if known is None:
            steps = [s for s in self.forward if not s.free][:outputs] if outputs > 1 else [s for s in self.forward if s.name == "y"]
            known = self.outputs[outputs] = tuple(steps)
        return known


NO_FORMULA = Formula((), (), (), ())
"""Of a node that is no kernel."""


def _together(rules: list[Rule]) -> Formula:
    steps = tuple(step for rule in rules for step in rule.steps)
    return Formula(
        reads=tuple(dict.fromkeys(name for rule in rules for name in rule.reads)),
        steps=steps,
        late=tuple(step for rule in rules for step in rule.late),
        targets=tuple({step.name[1:] for step in steps if step.name[0] == "g"}),
    )


_STEP = re.compile(r"(-?)(\w+)(!?)(?:([=~])(\w+)(?:\*(\w+))?(?::(\w+))?(?:/(\d+))?)?$")


def parse(table: str) -> dict[str, Kernel]:
    """Reads a kernel table; raises ValueError on a line that is no kernel."""
    lines = (line.split("#", 1)[0].strip() for line in table.splitlines())
    return {kernel.name: kernel for kernel in map(_kernel, filter(None, lines))}


def _kernel(line: str) -> Kernel:
    name, forward, gradients = (part.strip() for part in line.split("|"))
    rules = tuple(_rule(text) for text in gradients.split(";") if text)
    name, _, inputs = name.rstrip(")").partition("(")
    named = tuple(inputs.split(",")) if inputs else ("x",)
    weights = dict.fromkeys(target for rule in rules for target in rule.targets if target in ("w", "b") and target not in named)
    return Kernel(name, _steps(forward), rules, named, tuple(weights))


def _rule(text: str) -> Rule:
    head, steps = text.split(":", 1)
    targets, _, reads = head.strip().rstrip(")").partition("(")
    own, _, late = steps.partition(">")
    return Rule(tuple(targets.split(",")), tuple(filter(None, reads.split(","))), _steps(own), _steps(late))


def _steps(text: str) -> tuple[Step, ...]:
    return tuple(_step(word) for word in text.split())


def _step(word: str) -> Step:
    match = _STEP.match(word)
    if match is None:
        raise ValueError(f"kernel step {word!r}: want name=operand, name~operand or -name")
    minus, name, kept, kind, base, times, itemsize, over = match.groups()
    width = int(itemsize) if itemsize and itemsize.isdigit() else itemsize
    return Step(name, Size(base or "", width, times or "", int(over or 1)), kind == "~", bool(minus), bool(kept))
