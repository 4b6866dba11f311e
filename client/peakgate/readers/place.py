"""Where a value stands, for whom it is shown to and for whoever writes it back."""

from __future__ import annotations

from dataclasses import dataclass

FLAG, YAML, JSON, TOML, PYTHON, VARIABLE, DIRECTIVE, DEFAULT, LAUNCHER, MANIFEST = (
    "flag",
    "yaml",
    "json",
    "toml",
    "python",
    "variable",
    "directive",
    "default",
    "launcher",
    "manifest",
)
"""Kinds of places: a flag of a command, a key of a file, a name in a program, an environment variable, an #SBATCH or #PEAKGATE line, a
framework's default, what a launcher's words come to, a field of a Kubernetes manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`file` as the caller named it, empty for a command line; `line` from 1, 0 where there is none; `key` in the syntax of its kind
    (--num-layers, zero_optimization.stage, PYTORCH_CUDA_ALLOC_CONF; of a default: which framework's, in words)."""

    kind: str
    key: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """For a person: `train.sbatch:12 --num-layers`, `default of transformers 5`."""
        if self.kind == DEFAULT:
            return f"default of {self.key}"
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return f"{where} {self.key}".strip() or "command line"


@dataclass(frozen=True, slots=True)
class Stated:
    """A value with where it stands: text of a command or a script, or what YAML, JSON and TOML make of it."""

    value: object
    place: Place

    @property
    def text(self) -> str:
        """The value as text."""
        try:
            return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)
        except ValueError:  # Python writes no number of more than 4300 digits
            return "a number without end"
