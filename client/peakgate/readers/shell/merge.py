"""What is known behind branches of which nobody knows which one ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakgate.readers.shell.values import Shell, Variable, text_of


def merge_branches(shell: Shell, ends: Sequence[Shell]) -> None:
    """Sets in `shell` what the branches agree on. A variable that only some of them set has their value (`[ -z "$N" ] && N=1`); where
    two give different ones the last branch holds (`else`, or what was before), and whoever uses it is told."""
    shell.folder = ends[-1].folder
    shell.budget.spend(characters=20 * sum(len(end.variables) for end in ends))
    names = dict.fromkeys(name for end in ends for name in end.variables)
    for name in names:
        found = [end.variables[name] for end in ends if name in end.variables]
        last = found[-1]
        if all(each is last or _texts(each) == _texts(last) for each in found):
            shell.variables[name] = last
            continue
        shell.variables[name] = Variable(last.elements, last.array, last.exported, last.doubt or _doubt(name, found, shell))
    for end in ends:
        shell.functions.update(end.functions)


def assume(shell: Shell, end: Shell, assumed: str) -> None:
    """Notes of the variables of `shell` that they have another value in `end`, where an image sets the variable `assumed`."""
    shell.budget.spend(characters=20 * len(shell.variables))
    for name, variable in list(shell.variables.items()):
        other = end.variables.get(name)
        if other is not variable and (other is None or _texts(other) != _texts(variable)):
            shell.variables[name] = replace(variable, assumed=assumed)


def _texts(variable: Variable) -> dict[str, str]:
    return {key: text_of(value) for key, value in variable.elements.items()}


def _doubt(name: str, found: Sequence[Variable], shell: Shell) -> str:
    """Where a branch sets the variable otherwise."""
    lines = [value[0].line for variable in found[:-1] for value in variable.elements.values() if value]
    line = lines[-1] if lines else 0
    where = f"{shell.file}:{line}" if shell.file else f"line {line}"
    return f"{where}: a branch that cannot be decided here may give {name} another value"
