"""A change of the job as an edit of the launch it was read from."""

from __future__ import annotations

import json

import pytest
import yaml

from peakgate.readers.edits import Edit, diff, edited, with_flag
from peakgate.readers.place import FLAG, JSON, TOML, YAML, Place
from peakgate.readers.settings import read_settings

CONFIG = """\
# a run
train:
  micro_batch_size: 8   # per GPU
  dtype: 'bf16'
model: {name: x}
"""
DS = '{\n  "bf16": {"enabled": true},\n  "zero_optimization": {\n    "stage": 1,\n    "overlap_comm": true\n  }\n}\n'
TITAN = "[training]\nlocal_batch_size = 8  # per GPU\nseq_len = 4096\n\n[parallelism]\ntensor_parallel_degree = 1\n"


def comments(text: str) -> list[str]:
    """What stands behind each #."""
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def place(kind: str, text: str, key: str, file: str) -> Place:
    """Where a setting stands, or would stand."""
    stated = read_settings(text, file)(key)
    return stated.place if stated else Place(kind=kind, key=key, file=file)


@pytest.mark.parametrize(
    ("kind", "text", "file", "key", "value"),
    [
        (YAML, CONFIG, "c.yaml", "train.micro_batch_size", 4),
        (YAML, CONFIG, "c.yaml", "train.dtype", "fp16"),
        (YAML, CONFIG, "c.yaml", "train.gradient_checkpointing", True),
        (YAML, CONFIG, "c.yaml", "seed", 7),
        (JSON, DS, "ds.json", "zero_optimization.stage", 3),
        (JSON, DS, "ds.json", "zero_optimization.reduce_bucket_size", 1000),
        (JSON, DS, "ds.json", "bf16.enabled", False),
        (TOML, TITAN, "t.toml", "training.local_batch_size", 2),
        (TOML, TITAN, "t.toml", "parallelism.pipeline_parallel_degree", 2),
        (TOML, TITAN, "t.toml", "activation_checkpoint.mode", "full"),
    ],
)
def test_a_setting_gets_its_value_and_all_else_stays(kind: str, text: str, file: str, key: str, value: object) -> None:
    """Whether it stood there or not, comments included."""
    after = edited(text, [Edit(place(kind, text, key, file), value)])  # type: ignore[arg-type]  # the parameters are scalars
    before, now = read_settings(text, file).leaves, read_settings(after, file).leaves
    assert now.pop(key).value == value
    before.pop(key, None)
    assert {path: each.value for path, each in now.items()} == {path: each.value for path, each in before.items()}
    assert comments(after) == comments(text)
    (json.loads if kind == JSON else yaml.safe_load if kind == YAML else str)(after)


SCRIPT = "#!/bin/bash\ntorchrun --nproc_per_node 8 train.py \\\n  --micro-batch-size 8 \\\n  --seq-length=4096 \\\n  --use-flash-attn\n"


@pytest.mark.parametrize(
    ("line", "flag", "value", "want"),
    [
        (3, "--micro-batch-size", 2, "  --micro-batch-size 2 \\"),
        (4, "--seq-length", 2048, "  --seq-length=2048 \\"),
        (5, "--use-flash-attn", False, "  "),
        (3, "--micro-batch-size", ["1", "2"], "  --micro-batch-size 1 2 \\"),
    ],
)
def test_a_flag_is_replaced_on_its_line(line: int, flag: str, value: object, want: str) -> None:
    """The rest of the script is as it was."""
    after = edited(SCRIPT, [Edit(Place(kind=FLAG, key=flag, file="r.sh", line=line), value)])  # type: ignore[arg-type]  # the parameters are scalars
    assert after.split("\n")[line - 1] == want
    assert [each for index, each in enumerate(after.split("\n"), 1) if index != line] == [
        each for index, each in enumerate(SCRIPT.split("\n"), 1) if index != line
    ]


def test_a_new_flag_stands_behind_the_program() -> None:
    """On a script's line, and on a command line."""
    assert "train.py --recompute-granularity full \\" in with_flag(SCRIPT, "train.py", "--recompute-granularity", "full")
    assert with_flag("python train.py a", "train.py", "--fast", True) == "python train.py --fast a"
    with pytest.raises(ValueError, match="does not stand"):
        with_flag("python other.py", "train.py", "--fast", True)


def test_a_diff_shows_what_changes() -> None:
    """And nothing where nothing does."""
    after = edited(CONFIG, [Edit(place(YAML, CONFIG, "train.micro_batch_size", "c.yaml"), 4)])
    assert "-  micro_batch_size: 8   # per GPU" in diff(CONFIG, after, "c.yaml")
    assert "+  micro_batch_size: 4   # per GPU" in diff(CONFIG, after, "c.yaml")
    assert diff(CONFIG, CONFIG, "c.yaml") == ""
