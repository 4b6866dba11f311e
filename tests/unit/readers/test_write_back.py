"""Suggested changes as edits of the launch that a job was read from."""

from __future__ import annotations

from typing import Any

import pytest

from peakgate.readers.files import GivenFiles
from peakgate.readers.place import DEFAULT
from peakgate.readers.read import read_command, read_file
from peakgate.readers.registry import READERS
from peakgate.readers.write_back import write_back
from peakgate.readers.write_rows import WRITES

MEGATRON = """\
#!/bin/bash
MBS=8
torchrun --nproc_per_node 8 pretrain_gpt.py \\
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \\
  --micro-batch-size $MBS --global-batch-size 64 --bf16  # what fits
"""
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 8  # per GPU
seq_len = 4096
[parallelism]
tensor_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
"""
AXOLOTL = """\
base_model: NousResearch/Llama-3.2-1B
sequence_len: 4096
micro_batch_size: 8   # per GPU
gradient_accumulation_steps: 1
optimizer: adamw_torch
bf16: auto
datasets:
  - path: x
    type: alpaca
"""


@pytest.mark.parametrize(
    ("name", "text", "changes", "want"),
    [
        (
            "run.sh",
            MEGATRON,
            {"batch.micro_batch_size": 4, "batch.gradient_accumulation_steps": 2, "checkpointing.mode": "full", "parallelism.tensor": 2},
            ["--micro-batch-size 4 ", "--recompute-granularity full", "--recompute-num-layers 1", "--tensor-model-parallel-size 2"],
        ),
        (
            "train.toml",
            TITAN,
            {"batch.micro_batch_size": 2, "checkpointing.mode": "full", "parallelism.tensor": 4, "parallelism.context": 2},
            ["local_batch_size = 2  # per GPU", 'mode = "full"', "tensor_parallel_degree = 4", "context_parallel_degree = 2"],
        ),
        (
            "x.yaml",
            AXOLOTL,
            {
                "batch.micro_batch_size": 4,
                "batch.gradient_accumulation_steps": 2,
                "checkpointing.mode": "full",
                "attention.implementation": "flash",
            },
            ["micro_batch_size: 4   # per GPU", "gradient_accumulation_steps: 2", "gradient_checkpointing: true", "flash_attention: true"],
        ),
    ],
)
def test_what_is_written_reads_as_it_was_wanted(name: str, text: str, changes: dict[str, Any], want: list[str]) -> None:
    """The launch with the edits, read again, says the changed fields, and the rest as before."""
    files = GivenFiles({name: text})
    reading = read_file(name, files)
    found = write_back(reading, changes, files)
    assert found.unsaid == []
    (before, after) = found.texts[name]
    assert before == text
    for part in want:
        assert part in after
    again = read_file(name, GivenFiles({name: after}))
    for path, value in changes.items():
        if path != "batch.gradient_accumulation_steps" or reading.format == "axolotl":
            assert again.fields[path].value == value, path
    said = {path for path, stated in reading.fields.items() if stated.place.kind != DEFAULT}  # a default may follow from what is changed
    untouched = said - set(changes) - {"batch.gradient_accumulation_steps"}
    assert {path: again.fields[path].value for path in untouched if path in again.fields} == {
        path: reading.fields[path].value for path in untouched if path in again.fields
    }


def test_a_command_line_is_written_as_a_command() -> None:
    """A new flag stands behind the program."""
    command = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --micro-batch-size 8"
    reading = read_command(command, GivenFiles())
    found = write_back(reading, {"batch.micro_batch_size": 2, "parallelism.tensor": 2}, GivenFiles(), command)
    (_, after) = found.texts[""]
    assert "pretrain_gpt.py --tensor-model-parallel-size 2 " in after
    assert after.endswith("--micro-batch-size 2")


def test_what_a_format_cannot_say_is_told() -> None:
    """In the document's words."""
    files = GivenFiles({"x.yaml": AXOLOTL})
    found = write_back(read_file("x.yaml", files), {"framework.expandable_segments": True}, files)
    assert found.texts == {}
    assert found.unsaid == ["framework.expandable_segments: True"]


def test_every_written_format_has_a_reader() -> None:
    """Rows of no reader would never be used."""
    assert set(WRITES) <= {reader.name for reader in READERS}
