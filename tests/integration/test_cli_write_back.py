"""A suggestion as an edit of the launch that the job was read from, shown and written."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.cli import peakgate

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=1
torchrun --nproc_per_node 1 pretrain_gpt.py \\
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 \\
  --micro-batch-size 16 --global-batch-size 256 --bf16 --vocab-size 50304
"""


def test_suggestions_are_edits_of_the_launch(tmp_path: Path) -> None:
    """As a diff in the answers of predict and suggest; the file stays as it is."""
    (tmp_path / "run.sh").write_text(SCRIPT)
    for verb in ("predict", "suggest"):
        done = peakgate(verb, "run.sh", "--gpu", "a100-40gb", "--output", "json", folder=tmp_path)
        suggestions = json.loads(done.out)["suggestions"]
        assert any("+  --micro-batch-size" in each["diff"] for each in suggestions), verb
    assert (tmp_path / "run.sh").read_text() == SCRIPT


def test_a_suggestion_is_written_with_a_backup(tmp_path: Path) -> None:
    """On request alone; the launch then fits."""
    (tmp_path / "run.sh").write_text(SCRIPT)
    done = peakgate("suggest", "run.sh", "--gpu", "a100-40gb", "--write", "1", folder=tmp_path)
    assert "run.sh.bak" in done.out
    assert (tmp_path / "run.sh.bak").read_text() == SCRIPT
    assert (tmp_path / "run.sh").read_text() != SCRIPT
    assert peakgate("predict", "run.sh", "--gpu", "a100-40gb", "--brief", folder=tmp_path).status == 0


def test_a_number_that_no_suggestion_has_is_refused(tmp_path: Path) -> None:
    """And nothing is written."""
    (tmp_path / "run.sh").write_text(SCRIPT)
    done = peakgate("suggest", "run.sh", "--gpu", "a100-40gb", "--write", "99", folder=tmp_path)
    assert done.status == 2
    assert "--write 99" in done.err
    assert (tmp_path / "run.sh").read_text() == SCRIPT
