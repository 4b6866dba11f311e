"""The page for operators is what the command prints, and explains every word that an operator meets."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.histories import a_history
from tests.integration.cli import peakgate

from peakgate.calibration import gate, trust

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")


def test_the_simulation_answers_as_shown(tmp_path: Path) -> None:
    """The block under the command, word for word, of the history that `python -m tests.histories` prints."""
    ((command, shown),) = re.findall(r"```sh\npeakgate (.*?)\n```\n\n```\n(.*?)\n  …\n```", PAGE, re.DOTALL)
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in a_history(6000, seed=7)))
    done = peakgate(*command.split(), folder=tmp_path)
    want = shown.split()
    assert "→" in want
    assert done.out.split()[: len(want)] == want


def test_the_line_of_a_history_is_one_that_is_read(tmp_path: Path) -> None:
    """With a job document in its place."""
    (line,) = re.findall(r"```\n(\{\"job\".*?)\n```", PAGE, re.DOTALL)
    document = json.dumps(next(a_history(1))["job"])
    (tmp_path / "history.jsonl").write_text(line.replace("{…a job document…}", document).replace("\n", ""))
    done = peakgate("calibration", "simulate", "--history", "history.jsonl", "--policy", "site", "--output", "json", folder=tmp_path)
    assert json.loads(done.out)["attempts"] == 1


def words_of(module: object) -> set[str]:
    """Reason words are constants that are their own name."""
    return {name for name, value in vars(module).items() if name.isupper() and value == name}


def test_every_word_is_explained() -> None:
    """Those of distrust, and those of the quarantine but the one that no site meets."""
    found = words_of(trust) | words_of(gate) - {gate.NO_RESIDUAL}
    assert len(found) > 10
    assert {word for word in found if f"`{word}`" not in PAGE} == set()
