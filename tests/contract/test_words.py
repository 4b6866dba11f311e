"""The text of the project stands on its own: it names no private path, no package mirror and no tool that wrote it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.contract.sources import ROOT, files

# A character in brackets keeps a pattern from matching its own line.
FORBIDDEN = re.compile(
    r"""/w[o]rk/ | \.\./s[h]ared | /o[p]t/(pypi|wheels) | /tmp/b[r]ief | /r[o]ot/\.pyenv
    | extra-index-[u]rl | find-l[i]nks | PIP_INDEX_[U]RL | index-u[r]l | p[y]pi[ -]mirror | art[i]factory
    | c[l]aude | a[n]thropic | c[h]atgpt | c[o]pilot | AI[ -]a[s]sistant | language[ -]model[ -]a[s]sistant""",
    re.IGNORECASE | re.VERBOSE,
)
# Rows copied from public sources keep those sources' own words; a model family may be named after its maker.
QUOTED = (ROOT / "tests/golden",)


def forbidden_words(path: Path) -> list[str]:
    """`file:line: word` for every forbidden word of a text file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [f"{path}:{number}: {match.group()}" for number, line in enumerate(lines, 1) for match in FORBIDDEN.finditer(line)]


def test_no_file_names_what_it_must_not() -> None:
    """No file of the repository holds a forbidden word."""
    assert [hit for path in files() if not path.is_relative_to(QUOTED[0]) for hit in forbidden_words(path)] == []


@pytest.mark.parametrize("word", ["/w" + "ork/main", "../sh" + "ared/x.md", "pip --extra-index-" + "url x", "made by Cl" + "aude"])
def test_a_planted_word_is_found(tmp_path: Path, word: str) -> None:
    """The pattern sees each kind of word."""
    path = tmp_path / "note.md"
    path.write_text(f"first line\nsee {word} for more\n")
    assert len(forbidden_words(path)) == 1
