"""Launchers start some number of processes, and the program's degrees need a multiple of theirs."""

from __future__ import annotations

import pytest

from peakgate.readers.files import GivenFiles
from peakgate.readers.read import read_command, read_file

MEGATRON = (
    "torchrun --nproc_per_node 8 --nnodes {nodes} pretrain_gpt.py --num-layers 96 --hidden-size 12288 --num-attention-heads 96 "
    "--micro-batch-size 1 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16"
)
TITAN = "torchrun --nproc_per_node 6 -m torchtitan.train --job.config_file job.toml"


@pytest.mark.parametrize(("nodes", "want"), [(1, 1), (15, 1), (16, 0), (32, 0)])
def test_a_world_that_the_degrees_do_not_divide_is_told(nodes: int, want: int) -> None:
    """Both places are named: the launcher's flag and the program's."""
    found = read_command(MEGATRON.format(nodes=nodes), GivenFiles())
    told = [each for each in found.warnings if "no multiple" in each]
    assert len(told) == want
    for sentence in told:
        for words in (f"{8 * nodes} (", "tensor 8 (--tensor-model-parallel-size)", "pipeline 16 (--pipeline-model-parallel-size)"):
            assert words in sentence


def test_another_format_as_well() -> None:
    """The degrees of a config file, and the processes of a command."""
    toml = '[model]\nname = "llama3"\nflavor = "8B"\n[parallelism]\ntensor_parallel_degree = 4\n'
    found = read_command(TITAN, GivenFiles({"job.toml": toml}))
    (warning,) = found.warnings
    assert "6 (" in warning
    assert "tensor 4 (job.toml:5 parallelism.tensor_parallel_degree)" in warning


def test_copies_that_do_not_divide_are_told_by_the_format() -> None:
    """They are no degree of the model's own."""
    toml = '[model]\nname = "llama3"\nflavor = "8B"\n[parallelism]\ndata_parallel_replicate_degree = 4\n'
    (warning,) = read_command(TITAN, GivenFiles({"job.toml": toml})).warnings
    assert "torchtitan refuses" in warning


def test_what_the_submitter_says_settles_it() -> None:
    """A world in a line of the submitter's own is what is checked."""
    script = f"#PEAKGATE parallelism.world_size=128\n{MEGATRON.format(nodes=1)}\n"
    assert not any("no multiple" in each for each in read_file("job.sh", GivenFiles({"job.sh": script})).warnings)
