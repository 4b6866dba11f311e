"""What may train is told by its words."""

from __future__ import annotations

import pytest
from tests.unit.readers.cases import CASES

from peakgate.hooks.signs import may_train, names_training

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


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("torchrun run_clm.py --model_name_or_path gpt2 --do_eval --per_device_eval_batch_size 8", False),
        ("torchrun run_clm.py \\\n --do_train False \\\n --do_predict", False),
        ("torchrun run_clm.py --do_train --do_eval", True),
        ("torchrun run_clm.py", True),
        ("torchrun run_clm.py --do_eval\npython train.py", True),
        ("torchrun mine.py --do_eval", True),
    ],
)
def test_an_example_script_that_evaluates_alone_trains_nothing(text: str, *, want: bool) -> None:
    """It trains where it is told to; another script may train all the same."""
    assert names_training(text) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("python embed.py --pretrained bert-base", False),
        ("python app.py --pretrained-model-path /m", False),
        ("python solve.py --constraints x", False),
        ("vllm serve x --enable-lora --max-lora-rank 16 --lora-modules a=b", False),
        ("python train.py --pretrained x", True),
        ("python pretrain.py", True),
        ("python llm_trainer.py", True),
        ("python x.py --lora_rank 8", True),
        ("python x.py --num_train_epochs 3", True),
    ],
)
def test_what_other_programs_have_is_no_word_of_training(text: str, *, want: bool) -> None:
    """A model that was trained, a constraint, an adapter that is served."""
    assert names_training(text) is want
