"""How the code reads: a file fits in a head, a function does one thing, a test says what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.contract.sources import ROOT, sources

LONGEST_FILE_LINES = 400
LONGEST_FUNCTION_LINES = 50
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function of a file, methods and nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


@cache
def functions_of_tests() -> tuple[tuple[Path, Function], ...]:
    """Every function of the test files, with its file."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return tuple((path, function) for path in files for function in functions(ast.parse(path.read_text())))


def test_files_are_short() -> None:
    """No file is longer than 400 lines."""
    paths = [source.path for source in sources()] + sorted((ROOT / "tests").rglob("*.py"))
    assert [str(path.relative_to(ROOT)) for path in paths if len(path.read_text().splitlines()) > LONGEST_FILE_LINES] == []


def test_functions_are_short() -> None:
    """No function is longer than 50 lines."""
    own = [(source.path, function) for source in sources() for function in functions(source.tree)]
    spans = [(path, each, (each.end_lineno or 0) - each.lineno + 1) for path, each in (*own, *functions_of_tests())]
    assert [f"{path}:{function.lineno} {function.name}: {lines}" for path, function, lines in spans if lines > LONGEST_FUNCTION_LINES] == []


def test_public_names_are_documented() -> None:
    """Every module, class and top-level function that others may use has a docstring."""
    missing = []
    for source in sources():
        public = [node for node in source.tree.body if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")]
        missing += [f"{source.path}:{node.lineno} {node.name}" for node in public if not ast.get_docstring(node)]
        missing += [] if ast.get_docstring(source.tree) else [f"{source.path}: module"]
    assert missing == []


def test_every_test_states_its_behaviour() -> None:
    """Each test function has a docstring."""
    missing = [
        f"{path}:{test.lineno} {test.name}"
        for path, test in functions_of_tests()
        if test.name.startswith("test_") and not ast.get_docstring(test)
    ]
    assert missing == []
