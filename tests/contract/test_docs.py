"""The documents: commands that they name exist, and links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.contract.sources import ROOT, files

DOCUMENTS = [path for path in files() if path.suffix == ".md"]
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
PROGRAM = Path(sys.executable).with_name("peakgate")
# Verbs that have verbs of their own.
GROUPS = frozenset({"catalog", "calibration", "db", "slurm", "kueue"})
# Verbs of the command, as the contract names them, that exist today.
VERBS = {"predict", "read", "suggest", "explain", "diagnose", "trace", "probe", "serve", "agent", "gate"}
VERBS |= {"jobs", "catalog", "schema", "db", "doctor", "calibration", "slurm", "sbatch", "srun", "salloc"}


def code_of(path: Path) -> str:
    """The code blocks and code words of a document."""
    return "\n".join(CODE.findall(path.read_text(encoding="utf-8")))


@cache
def help_of(*verb: str) -> str:
    """The help text of a verb, our own where it hands over to a program of Slurm's; fails the test when there is none."""
    alone = os.environ | {"PATH": os.devnull}
    done = subprocess.run([str(PROGRAM), *verb, "--help"], env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"peakgate {' '.join(verb)}: {done.stderr}"
    return done.stdout


def commands_of(path: Path) -> set[tuple[str, ...]]:
    """The verbs of `peakgate` that a document calls, with the second word of a group."""
    found: set[tuple[str, ...]] = set()
    for first, second in re.findall(r"(?:^|[`\s$])peakgate ([a-z]+)(?: ([a-z]+))?", code_of(path)):
        found.add((first, second) if first in GROUPS and second else (first,))
    return found


def test_the_command_has_the_promised_verbs() -> None:
    """`peakgate --help` lists every verb."""
    assert [verb for verb in VERBS if not re.search(rf"\b{verb}\b", help_of())] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_commands_exist(path: Path) -> None:
    """Each `peakgate VERB` in a document answers to --help."""
    for verb in commands_of(path):
        assert help_of(*verb)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_build_verbs_exist(path: Path) -> None:
    """Each `make VERB` in a document is one of the Makefile's."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|[`\s])make ([a-z][a-z-]+)", code_of(path), re.MULTILINE)) <= targets


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    """Each relative link names a file of the repository."""
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
