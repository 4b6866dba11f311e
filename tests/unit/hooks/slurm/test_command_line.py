"""The words behind `peakgate sbatch`: our options, Slurm's, the script."""

from __future__ import annotations

import pytest

from peakgate.hooks.slurm.command_line import OwnOptionError, asks_for_gpus, options_around, options_of_script, read_command_line


@pytest.mark.parametrize(
    ("words", "want_behind", "want_options"),
    [
        (["job.sh", "--gres=gpu:1"], ("job.sh", "--gres=gpu:1"), {}),
        (["--gres=gpu:2", "-p", "a100", "job.sh"], ("job.sh",), {"gres": "gpu:2", "partition": "a100"}),
        (["-N2", "-G", "h100:8", "job.sh"], ("job.sh",), {"nodes": "2", "gpus": "h100:8"}),
        (["-HN", "2", "job.sh"], ("job.sh",), {"H": "", "nodes": "2"}),
        (["--exclusive", "--wait", "job.sh"], ("job.sh",), {"exclusive": "", "wait": ""}),
        (["--exclus", "job.sh"], ("job.sh",), {"exclus": ""}),
        (["--parsable", "--wrap", "python train.py"], (), {"parsable": "", "wrap": "python train.py"}),
        (["--gpus", "1", "--", "-job.sh"], ("-job.sh",), {"gpus": "1"}),
        (["-"], ("-",), {}),
        (["--gpus"], (), {"gpus": ""}),
        ([], (), {}),
    ],
)
def test_words_are_told_apart(words: list[str], want_behind: tuple[str, ...], want_options: dict[str, str]) -> None:
    """As getopt_long(3) reads them; every word is kept."""
    line = read_command_line("sbatch", words)
    assert (line.behind, dict(line.components[0].options)) == (want_behind, want_options)
    assert line.words == tuple(words)


def test_own_options_are_taken_out() -> None:
    """The real program never sees them, in either form; behind the script they are the script's."""
    line = read_command_line("sbatch", ["--peakgate-try", "one run", "-N2", "--peakgate-mode=warn", "job.sh", "--peakgate-mode=off"])
    assert line.words == ("-N2", "job.sh", "--peakgate-mode=off")
    assert line.own == {"try": "one run", "mode": "warn"}


def test_an_own_option_that_is_none_is_refused() -> None:
    """With the ones that are."""
    with pytest.raises(OwnOptionError, match="--peakgate-moed is no option, known are --peakgate-mode"):
        read_command_line("sbatch", ["--peakgate-moed=off", "job.sh"])


def test_components_of_a_heterogeneous_job() -> None:
    """Each has options of its own, and a place behind them."""
    line = read_command_line("sbatch", ["-n1", ":", "--gres=gpu:h100:8", "-n2", "job.sh"])
    assert [dict(each.options) for each in line.components] == [{"ntasks": "1"}, {"gres": "gpu:h100:8", "ntasks": "2"}]
    assert [line.words[each.end] for each in line.components] == [":", "job.sh"]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, False),
        ({"gres": "gpu:h100:1"}, True),
        ({"gres": "gpu"}, True),
        ({"gres": "lustre:1,gpu:2"}, True),
        ({"gres": "shard:4"}, False),
        ({"gres": "mps:50"}, False),
        ({"gres": "craynetwork:0"}, False),
        ({"gpus": "0"}, False),
        ({"gpus_per_task": "a100:1"}, True),
        ({"gpus_per_node": "4"}, True),
        ({"tres_per_task": "gres/gpu=1"}, True),
        ({"tres_per_task": "cpu=4,gres/gpu:h100=2"}, True),
    ],
)
def test_whole_gpus_are_seen(options: dict[str, str], want: bool) -> None:
    """Every form of asking for them; shares of a card are none."""
    assert asks_for_gpus(options) is want


def test_lines_of_a_script_count_up_to_its_first_command() -> None:
    """As sbatch reads them, quotes and remarks behind them included."""
    text = '#!/bin/bash\n#SBATCH --gres=gpu:1 --comment="a b"\n#SBATCH -p a100 # the large ones\n\npython train.py\n#SBATCH --gpus=8\n'
    assert options_of_script(text) == {"gres": "gpu:1", "comment": "a b", "partition": "a100"}


def test_variables_win_over_lines() -> None:
    """SBATCH_GPUS is between the script and the command line (sbatch(1))."""
    line = read_command_line("sbatch", ["job.sh"])
    assert options_around(line, "#SBATCH --gpus=1\n", {"SBATCH_GPUS": "4", "SLURM_GPUS": "2"}) == {"gpus": "4"}
    assert options_around(read_command_line("srun", []), "", {"SBATCH_GPUS": "4", "SLURM_GPUS": "2"}) == {"gpus": "2"}
