"""The folders: one namespace over four roots, typed packages, build verbs."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest
from tests.contract.sources import CODE_ROOTS, ROOT, sources

PACKAGES = [
    folder
    for root in CODE_ROOTS
    for folder in sorted((ROOT / root / "peakgate").iterdir())
    if folder.is_dir() and folder.name != "__pycache__"
]
VERBS = {"help", "dev", "gen", "lint", "type", "test", "demo", "bench", "soak", "gpu-check", "package"}


def test_the_namespace_has_no_init_file() -> None:
    """One `peakgate/__init__.py` would hide the other roots."""
    assert [root for root in CODE_ROOTS if (ROOT / root / "peakgate" / "__init__.py").exists()] == []


def test_the_four_roots_are_one_namespace() -> None:
    """The parts are importable side by side."""
    import peakgate

    assert {path.split("/")[-2] for path in peakgate.__path__} == set(CODE_ROOTS)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_package_is_typed_and_says_what_it_is(folder: object) -> None:
    """Each package ships its types, and its docstring is one line that says what it is for."""
    init = next((source for source in sources() if str(source.path) == f"{folder}/__init__.py"), None)
    assert (ROOT / str(folder) / "py.typed").exists()
    assert init, f"{folder} has no __init__.py"
    assert ast.get_docstring(init.tree)


def test_make_help_lists_every_verb() -> None:
    """`make help` is the index of the verbs, and each verb exists."""
    done = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"^make ([a-z-]+) +\S", done.stdout, re.MULTILINE)) == VERBS


def test_ci_runs_the_suite_with_torch() -> None:
    """CI calls the same verb as a person, and adds the tests that run PyTorch."""
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "PEAKGATE_TEST_TORCH=1 make test" in script.read_text().splitlines()[-1]


def test_decision_records_are_numbered_and_complete() -> None:
    """Records have consecutive numbers and the four parts of a decision."""
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        text = record.read_text()
        assert all(f"**{part}" in text for part in ("Status", "Context", "Decision", "Consequences")), record
