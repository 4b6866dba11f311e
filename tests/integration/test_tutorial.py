"""The tutorial's page is what its blocks print."""

from __future__ import annotations

import io
import re
from code import InteractiveConsole
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.integration.cli import peakgate

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
"""A block and what it prints."""


def test_every_block_prints_what_stands_below_it() -> None:
    """The Python blocks run in order in one interactive session, as a reader pastes them."""
    session = InteractiveConsole()
    for code, want in STEP.findall(PAGE):
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            for line in [*code.splitlines(), ""]:
                session.push(line)
        assert out.getvalue() == want, code


def test_no_block_is_passed_over() -> None:
    """Each Python block has its output, and there are as many as the exercises need."""
    assert len(STEP.findall(PAGE)) == PAGE.count("```python\n") >= 5


def test_the_command_answers_as_shown() -> None:
    """The page ends in a command; its output begins, word for word, as the page says."""
    ((command, shown),) = re.findall(r"```sh\npeakgate (.*?)\n```\n\n```\n(.*?)\n  …\n```", PAGE, re.DOTALL)
    done = peakgate(*command.split(), folder=ROOT)
    want = shown.split()
    assert want[0] == "REJECT"
    assert done.out.split()[: len(want)] == want
