"""Who may import whom: memory <- calibration <- server; client, readers, hooks and agent see only the API."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests.contract.sources import Source, source_of, sources

# Package to the packages of the project that it may import. Its own is always allowed.
ALLOWED = {
    "peakgate.v1": set(),
    "peakgate.kubelet": set(),
    "peakgate.memory": set(),
    "peakgate.calibration": {"peakgate.memory"},
    "peakgate.server": {"peakgate.memory", "peakgate.calibration", "peakgate.v1"},
    "peakgate.client": {"peakgate.readers", "peakgate.v1"},
    "peakgate.readers": {"peakgate.v1"},
    "peakgate.hooks": {"peakgate.client", "peakgate.readers", "peakgate.v1"},
    "peakgate.agent": {"peakgate.v1", "peakgate.kubelet"},
}
# The one command starts the other programs, and the embedded service, from inside a function: installs with one extra stay whole.
ALLOWED_IN_FUNCTIONS = {"peakgate.client": {"peakgate.server", "peakgate.agent", "peakgate.hooks"}}
# What a training process loads of the project, and the frameworks that it has loaded itself: neither gRPC nor protobuf.
IN_TRAINING = "peakgate.client.torch"
LOADED_IN_TRAINING = {"peakgate.v1.allocator_report", "transformers", "lightning.pytorch", "pytorch_lightning"}
PURE = {"peakgate.memory", "peakgate.calibration"}
# A family is data: blocks and what they are put together from, and nothing that runs them.
FAMILIES, OF_FAMILIES = "peakgate.memory.families", {"peakgate.memory.architecture", "peakgate.memory.blocks"}
# Modules of the standard library that reach outside the process, tell the time or draw at random.
# fmt: off
IMPURE_MODULES = frozenset({
    "asyncio", "datetime", "glob", "http", "importlib", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets",
    "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
})
# fmt: on
IMPURE_BUILTINS = frozenset({"open", "print", "input", "eval", "exec", "__import__"})
ARRAYS = "peakgate.memory.suggest."
"""The plan search, the only part of the pure core with arrays."""

WRITES_FUNCTIONS = "peakgate.memory.program"
"""The one module that runs what it has written itself (docs/adr/0006-a-walk-is-compiled.md)."""


def imported(node: ast.AST, source: Source) -> list[str]:
    """The modules that one statement imports, relative ones resolved."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    if not node.level:
        base = node.module or ""
    else:
        parts = source.module.split(".")
        keep = len(parts) - node.level + (source.path.name == "__init__.py")
        base = ".".join([*parts[:keep], *([node.module] if node.module else [])])
    # `from peakgate import memory` names a package of ours in its second half.
    return [f"{base}.{alias.name}" for alias in node.names] if base == "peakgate" else [base]


def imports(source: Source) -> Iterator[tuple[str, bool]]:
    """(module, whether the import stands inside a function, or is for types alone) of a whole file."""

    def walk(node: ast.AST, *, inside: bool) -> Iterator[tuple[str, bool]]:
        for name in imported(node, source):
            yield name, inside
        deeper = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _is_for_types(node)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside=deeper)

    yield from walk(source.tree, inside=False)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def violations(source: Source) -> list[str]:
    """What a file imports against the rule."""
    package, found = source.package, []
    for name, inside in imports(source):
        top, ours = name.split(".")[0], ".".join(name.split(".")[:2])
        if top == "peakgate":
            allowed = {package} | ALLOWED[package] | (ALLOWED_IN_FUNCTIONS.get(package, set()) if inside else set())
            legal = ours in allowed
        else:
            pure = (top in sys.stdlib_module_names and top not in IMPURE_MODULES) or (top == "numpy" and source.module.startswith(ARRAYS))
            legal = package not in PURE or pure
        if not legal:
            found.append(f"{source.path}: {package} imports {name}{' in a function' if inside else ''}")
    return found


def named(source: Source, known: Mapping[str, Source]) -> set[str]:
    """The known modules that a file names anywhere, for types alone too."""
    statements = [node for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom)]
    bases = [(base, alias.name) for node in statements for base in imported(node, source) for alias in node.names]
    return {f"{base}.{name}" if f"{base}.{name}" in known else base for base, name in bases} & known.keys() - {source.module}


def impure_calls(source: Source) -> list[str]:
    """Calls of builtins that do input or output."""
    calls = (node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return [
        f"{source.path}:{call.lineno} calls {call.func.id}"
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in IMPURE_BUILTINS - ({"exec"} if source.module == WRITES_FUNCTIONS else set())
    ]


def planted(folder: Path, module: str, text: str) -> Source:
    """A module with this text, as the rules see it."""
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return source_of(path, folder)


def test_every_package_is_known() -> None:
    """A new package must be given its place in the rule before it is used."""
    assert {source.package for source in sources()} <= set(ALLOWED)


def test_no_import_crosses_a_boundary() -> None:
    """No hand-written file imports against the rule."""
    assert [line for source in sources() for line in violations(source)] == []


def test_a_training_process_loads_no_grpc() -> None:
    """The helper imports itself, its datagram and the framework; a job is read, without gRPC, when it is asked for."""
    found = {(name, inside) for source in sources() if source.module.startswith(IN_TRAINING) for name, inside in imports(source)}
    strange = {
        (name, inside) for name, inside in found if not name.startswith(IN_TRAINING) and name.split(".")[0] not in sys.stdlib_module_names
    }
    assert strange - {(name, False) for name in LOADED_IN_TRAINING} == {("peakgate.client", True)}
    datagram = next(source for source in sources() if source.module == "peakgate.v1.allocator_report")
    assert {name.split(".")[0] for name, _ in imports(datagram)} <= sys.stdlib_module_names


def test_a_family_imports_nothing_that_runs_it() -> None:
    """Its blocks know neither plans nor profiles nor the walk."""
    found = {name for source in sources() if source.module.startswith(FAMILIES) for name, _ in imports(source)}
    ours = {name for name in found if name.startswith("peakgate.") and not name.startswith(FAMILIES)}
    assert ours == OF_FAMILIES


@pytest.mark.parametrize("package", sorted(PURE))
def test_the_pure_core_reads_from_the_bottom_up(package: str) -> None:
    """No files name each other in a circle, not even for types: whoever reads one has read what it rests on."""
    known = {source.module: source for source in sources() if source.package == package}
    order = list(TopologicalSorter({module: named(source, known) for module, source in known.items()}).static_order())
    assert sorted(order) == sorted(known)


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    """An import for types closes a circle as any other does."""
    above = planted(tmp_path, "peakgate.memory.above", "from peakgate.memory import below")
    below = planted(tmp_path, "peakgate.memory.below", "if TYPE_CHECKING:\n    from peakgate.memory.above import Above")
    known = {source.module: source for source in (above, below)}
    with pytest.raises(CycleError):
        list(TopologicalSorter({module: named(source, known) for module, source in known.items()}).static_order())


def test_the_pure_core_does_no_input_or_output() -> None:
    """memory and calibration open no file and print nothing."""
    assert [line for source in sources() if source.package in PURE for line in impure_calls(source)] == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("peakgate.memory.walk", "import grpc"),
        ("peakgate.memory.walk", "import time"),
        ("peakgate.memory.walk", "from peakgate.server import settings"),
        ("peakgate.memory.walk", "from ..calibration import Snapshot"),
        ("peakgate.memory.walk", "from peakgate import calibration"),
        ("peakgate.agent.main", "def f():\n    import peakgate.server.main"),
        ("peakgate.client.main", "from peakgate.server.embedded import open_embedded"),
        ("peakgate.readers.axolotl", "import peakgate.client.connect"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, module: str, text: str) -> None:
    """The rule sees absolute, relative, nested and aliased imports."""
    assert violations(planted(tmp_path, module, text))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("peakgate.client.main", "def f():\n    from peakgate.server.embedded import open_embedded"),
        ("peakgate.server.decide", "from .settings import Settings\nfrom peakgate.memory.job import Job"),
        ("peakgate.memory.walk", "import math\nfrom .job import Job\nfrom peakgate.memory import choices"),
    ],
)
def test_a_legal_import_is_left_alone(tmp_path: Path, module: str, text: str) -> None:
    """The embedded service is started from inside a function; a package imports itself."""
    assert violations(planted(tmp_path, module, text)) == []


def test_a_planted_print_is_found(tmp_path: Path) -> None:
    """Output in the pure core does not go unseen."""
    assert impure_calls(planted(tmp_path, "peakgate.memory.walk", "print(1)"))
