"""The shell scripts and the filter that a site installs."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.contract.sources import ROOT

from peakgate.agent.jobs_folder import JobFile, JobsFolder

DEPLOY = ROOT / "deploy/slurm"
GPU, OTHER_GPU, SLICE = "GPU-aaaa-1", "GPU-aaaa-2", "MIG-bbbb-3"
PLAYED = """
local shown = {}
slurm = { SUCCESS = 0, ERROR = -1 }
io.popen = function(command) shown[#shown + 1] = command return nil end
dofile(arg[1])
local function play(options) return slurm_cli_pre_submit(options, 0) end
assert(play({ type = "sbatch", gres = "shard:2", argv = { "job.sh" } }) == 0)
assert(play({ type = "sbatch", ntasks = "4", gpus = "0", argv = { "job.sh" } }) == 0)
assert(play({ type = "sbatch" }) == 0 and play({}) == 0)
assert(#shown == 0)
assert(play({ type = "sbatch", gres = "gres:gpu:h100:1", nodes = "1-0", ["ntasks-per-node"] = "-2", comment = "it's $(mine)",
  argv = { "/home/a b/job.sh", "-x; rm" } }) == 0)
print(shown[1])
"""


def a_driver(folder: Path) -> Path:
    """What the driver says of two cards, whose device numbers are not in the order of their addresses."""
    for address, uuid, minor in (("0000:01:00.0", GPU, 1), ("0000:02:00.0", OTHER_GPU, 0)):
        path = folder / "driver" / address / "information"
        path.parent.mkdir(parents=True)
        path.write_text(f"Model: \t\t A card\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n")
    return folder / "driver"


def run(folder: Path, name: str, jobs: Path | None = None, /, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script as it is shipped, with folders of this test and no Slurm to ask."""
    text = (DEPLOY / name).read_text().replace("JOBS=/run/peakgate/jobs", f"JOBS={jobs or folder / 'jobs'}")
    script = folder / name
    script.write_text(text.replace("DRIVER=/proc/driver/nvidia/gpus", f"DRIVER={folder / 'driver'}"))
    variables = {"PATH": "/usr/bin:/bin", "SLURM_CLUSTER_NAME": "alps", "SLURM_JOB_ID": "7", "SLURM_JOB_USER": "ann"} | environment
    return subprocess.run(["/bin/sh", script], env=variables, capture_output=True, text=True, timeout=10, check=False)


def files(folder: Path) -> dict[str, JobFile | None]:
    """What the agent reads of the folder."""
    reader = JobsFolder(folder=folder / "jobs")
    return {path.stem: reader.job_on(path.stem) for path in (folder / "jobs").glob("*.json")}


def test_the_prolog_writes_a_file_for_each_card_by_its_device_number(tmp_path: Path) -> None:
    """NVML may count in another order; the agent reads what was written."""
    a_driver(tmp_path)
    run(tmp_path, "prolog.sh", SLURM_JOB_GPUS="1", SLURM_JOB_RESTART_COUNT="2", SLURM_JOB_NUM_NODES="99")
    assert files(tmp_path) == {GPU: JobFile(job="7", cluster="alps", restart=2, user="ann")}


def test_a_slice_is_named_by_slurm_itself(tmp_path: Path) -> None:
    """Of MIG instances CUDA_VISIBLE_DEVICES holds the UUIDs."""
    run(tmp_path, "prolog.sh", CUDA_VISIBLE_DEVICES=f"{SLICE},{GPU}", SLURM_JOB_NUM_NODES="99")
    assert set(files(tmp_path)) == {SLICE, GPU}


@pytest.mark.parametrize(
    "environment",
    [
        {"SLURM_JOB_GPUS": "0", "SLURM_JOB_USER": 'a", "job": "8'},
        {"SLURM_JOB_GPUS": "0", "SLURM_JOB_RESTART_COUNT": "x"},
        {"CUDA_VISIBLE_DEVICES": "GPU-../../etc/passwd,GPU-$(id)"},
        {"SLURM_JOB_GPUS": "", "CUDA_VISIBLE_DEVICES": ""},
        {"SLURM_JOB_GPUS": "0", "SLURM_JOB_ID": ""},
    ],
)
def test_the_prolog_ends_well_whatever_it_is_given(tmp_path: Path, environment: dict[str, str]) -> None:
    """A failure would drain the node; nothing that it writes is another job's."""
    a_driver(tmp_path)
    began = time.monotonic()
    done = run(tmp_path, "prolog.sh", **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - began < 1
    found = [json.loads(path.read_text()) for path in tmp_path.rglob("*.json")]
    assert all(each["job"] == "7" and set(each) == {"cluster", "job", "restart", "prediction", "user"} for each in found)


def test_scripts_end_well_without_their_folder(tmp_path: Path) -> None:
    """A folder that cannot be made is a job that the agent finds another way."""
    a_driver(tmp_path)
    blocked = tmp_path / "file"
    blocked.touch()
    for name in ("prolog.sh", "epilog.sh"):
        assert run(tmp_path, name, blocked / "jobs", SLURM_JOB_GPUS="0").returncode == 0


def test_the_epilog_takes_away_its_own_jobs_files_alone(tmp_path: Path) -> None:
    """Another job may have the next card."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / f"{GPU}.json").write_text('{"cluster": "alps", "job": "7"}')
    (tmp_path / "jobs" / f"{OTHER_GPU}.json").write_text('{"cluster": "alps", "job": "77"}')
    run(tmp_path, "epilog.sh", SLURM_SCRIPT_CONTEXT="epilog_slurmd")
    assert set(files(tmp_path)) == {OTHER_GPU}


@pytest.mark.parametrize("lua", ["lua5.1", "lua5.4"])
def test_the_filter_calls_out_for_whole_cards_alone_and_quotes_what_users_chose(tmp_path: Path, lua: str) -> None:
    """In the oldest and the newest Lua that Slurm is built with; a pipe that cannot be opened lets the job through."""
    if shutil.which(lua) is None:
        pytest.skip(f"{lua} is not installed (Debian: {lua})")
    player = tmp_path / "player.lua"
    player.write_text(PLAYED)
    done = subprocess.run([lua, player, DEPLOY / "cli_filter.lua"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    words = subprocess.run(
        ["/bin/sh", "-c", f"timeout() {{ printf '%s\\n' \"$@\"; }}; {done.stdout}"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert words[:5] == ["--kill-after=1", "5", "peakgate", "sbatch", "--peakgate-judge"]
    assert words[5:10] == ["--gres=gres:gpu:h100:1", "--comment=it's $(mine)", "--", "/home/a b/job.sh", "-x; rm"]
