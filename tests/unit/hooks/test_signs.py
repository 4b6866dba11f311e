"""What may train is told by its words."""

from __future__ import annotations

import pytest
from tests.unit.readers.cases import CASES

from peakgate.hooks.signs import may_train

LAUNCHES = sorted([*CASES.glob("*/*/command"), *CASES.glob("*/*/job.sh"), *CASES.glob("*/*/job.sbatch")])


@pytest.mark.parametrize("path", LAUNCHES, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_no_launch_that_a_reader_knows_is_passed_over(path: object) -> None:
    """Whatever the readers' own cases hold is looked at."""
    assert may_train(path.read_text())  # type: ignore[attr-defined]  # a Path, which pytest hands on as an object


@pytest.mark.parametrize(
    "text",
    ["hostname\n", "#!/bin/bash\n#SBATCH --gres=gpu:1\nnvidia-smi\n", "jupyter lab --no-browser\n", "python simulate.py --steps 5\n", ""],
)
def test_what_has_no_word_of_training_is_let_through(text: str) -> None:
    """Notebooks, tools and simulations cost no reader."""
    assert not may_train(text)
