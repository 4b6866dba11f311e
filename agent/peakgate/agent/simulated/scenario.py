"""Finds a scenario and fills in its variables. The grammar of what is left is in scenario.c.

`let NAME=VALUE` gives a variable its default, `$NAME` uses it, and the caller's `demo,NAME=VALUE,…` overrides it.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template

from peakgate.agent.errors import UsageError

LET = "let"


def scenario_text(spec: str) -> str:
    """The scenario that `spec` means: a name that ships with the agent, or a path, then variables after commas.

    Line numbers stay those of the file. Raises UsageError for an unknown scenario or variable.
    """
    name, *assignments = spec.split(",")
    lines = [line.partition("#")[0].rstrip() for line in _read(name).splitlines()]
    variables = dict(_assignment(line.split(maxsplit=1)[1]) for line in lines if _is_let(line))
    for given, value in map(_assignment, assignments):
        if given not in variables:
            raise UsageError(f"scenario {name} has no variable {given}", remedy=f"It has: {', '.join(sorted(variables)) or 'none'}")
        variables[given] = value
    return "\n".join("" if _is_let(line) else _filled(line, variables, name) for line in lines) + "\n"


def shipped_scenarios() -> list[str]:
    """Names of the scenarios that ship with the agent."""
    return sorted(entry.name.removesuffix(".scn") for entry in _folder().iterdir() if entry.name.endswith(".scn"))


def _folder() -> resources.abc.Traversable:
    return resources.files("peakgate.agent.simulated") / "scenarios"


def _read(name: str) -> str:
    if name in shipped_scenarios():
        return (_folder() / f"{name}.scn").read_text(encoding="utf-8")
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        remedy = f"Give a path, or one of: {', '.join(shipped_scenarios())}"
        raise UsageError(f"no scenario {name!r}: {error}", remedy=remedy) from error


def _is_let(line: str) -> bool:
    words = line.split(maxsplit=1)
    return len(words) == 2 and words[0] == LET


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.strip().partition("=")
    if not (name.isidentifier() and equals and value):
        raise UsageError(f"{text.strip()!r} is not NAME=VALUE")
    return name, value


def _filled(line: str, variables: dict[str, str], name: str) -> str:
    try:
        return Template(line).substitute(variables)
    except (KeyError, ValueError) as error:
        raise UsageError(f"scenario {name}: {line.strip()!r} uses a variable that is not set: {error}") from error
