"""What the parts of a walk through a script share."""

from __future__ import annotations

from typing import Protocol

from peakgate.readers.shell.script_files import ScriptFiles
from peakgate.readers.shell.tokens import Arithmetic, Block
from peakgate.readers.shell.values import Shell, Value

TRUE, FALSE, UNKNOWN, STARTED = "true", "false", "unknown", "started"
"""How a command ends: as a test that is decided, as one that is not, as a program of which success is assumed."""

SCRIPT, FUNCTION, LOOP = "script", "function", "loop"


class LeftError(Exception):
    """A script, a function or a loop is left; `failed`: with another status than 0."""

    def __init__(self, kind: str, *, failed: bool = False) -> None:
        super().__init__(kind)
        self.kind, self.failed = kind, failed


class Walking(Protocol):
    """A walk, as builtins see it."""

    shell: Shell

    def block(self, nodes: Block) -> str:
        """Goes through commands."""

    def arithmetic(self, node: Arithmetic) -> str:
        """Does `(( … ))`."""

    def run(self, fields: list[Value]) -> str:
        """Does one command of expanded words."""

    def on_failure(self, command: Value) -> None:
        """Notes what runs when a command fails."""

    def seen(self) -> ScriptFiles:
        """The files as the script sees them here."""
