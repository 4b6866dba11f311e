"""The project's own files, as the contract tests read them."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE_ROOTS = ("proto", "server", "agent", "client")
GENERATED = ("_pb2.py", "_pb2_grpc.py")


@dataclass(frozen=True)
class Source:
    """One hand-written module: its dotted name and its syntax tree."""

    module: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that a rule speaks of: peakgate.memory, peakgate.v1 and so on."""
        return ".".join(self.module.split(".")[:2])


def source_of(path: Path, root: Path) -> Source:
    """Parses the module at a path below an import root."""
    parts = path.relative_to(root).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(module, path, ast.parse(path.read_text(encoding="utf-8"), str(path)))


@cache
def sources() -> tuple[Source, ...]:
    """Every hand-written module of the four import roots."""
    paths = ((path, ROOT / name) for name in CODE_ROOTS for path in sorted((ROOT / name / "peakgate").rglob("*.py")))
    return tuple(source_of(path, root) for path, root in paths if not path.name.endswith(GENERATED))


def files() -> list[Path]:
    """Every file that is, or would be, in the repository."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in sorted(set(listed.stdout.split("\0"))) if name and (path := ROOT / name).is_file()]
