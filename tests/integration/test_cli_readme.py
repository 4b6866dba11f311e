"""What the README shows is what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.cli import peakgate

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words(text: str) -> list[str]:
    """Text without the line breaks and spaces of a page."""
    return text.split()


def test_the_example_output_is_the_real_one() -> None:
    """The block under the first command is, word for word, how the command's output begins."""
    (block,) = re.findall(r"```\n(REJECT.*?)\n  …\n```", README, re.DOTALL)
    done = peakgate("predict", "examples/textbook-1.3b.yaml", folder=ROOT)
    want = words(block)
    assert words(done.out)[: len(want)] == want


def test_the_example_document_is_answered(tmp_path: Path) -> None:
    """The job document that a reader copies is a job that fits."""
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "job.yaml").write_text(block)
    done = peakgate("predict", tmp_path / "job.yaml")
    assert done.status == 0, done.out
