"""Two public tools, unmodified, on the simulated NVML: what they show is what the scenario says.

They read NVML by their own code (nvitop by its own ctypes structures), so a library that answered only our agent would be found out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from peakgate.agent.errors import MissingPartError
from peakgate.agent.simulated.library import compiled_library, environment_for

MIB = 1 << 20
GIB = 1 << 30
NAME = "NVIDIA H100 80GB HBM3"
CARD = "total=81559M reserved=480M name=NVIDIA_H100_80GB_HBM3"
SCENARIO = """
driver 580.105.08 cuda=13.0
gpu 0 uuid=GPU-a {card} pci=0:1b:0 persistence=on gpu_utilization=97 temperature=63 power=612 power_limit=700
gpu 1 uuid=GPU-b {card}
gpu 2 uuid=GPU-c {card}
gpu 3 uuid=GPU-d {card}
mig 3 uuid=MIG-e total=40448M reserved=20M bar1=32G bar1_used=1G gi=1 ci=0 name=NVIDIA_H100_80GB_HBM3_MIG_3g.40gb
process 0 pid={pid} memory=0:52G sm_utilization=88
process 1 pid={pid} memory=0:NA kind=graphics
process 1 pid=0 memory=0:11G
process 3 pid={pid} memory=0:18G gi=1 ci=0
error 15 gpu=2
"""
"""A trainer with every figure; a figure that is not available; a lost GPU; a MIG instance."""


@pytest.fixture(scope="module")
def pid() -> Iterator[int]:
    """A live process, since the tools ask the system about each pid."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        yield program.pid
        program.communicate(b"\n")


@pytest.fixture(scope="module")
def environment(pid: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What makes a program use the library with the scenario."""
    folder = tmp_path_factory.mktemp("tools")
    try:
        library = compiled_library(cache=folder)
    except MissingPartError as error:
        pytest.skip(str(error))
    scenario = folder / "tools.scn"
    scenario.write_text(SCENARIO.format(pid=pid, card=CARD))
    return environment_for(library, scenario) | {"TERM": "dumb", "LC_ALL": "C.UTF-8", "HOME": str(folder), "COLUMNS": "80"}


def output_of(tool: str, environment: dict[str, str], *arguments: str, code: str = "") -> str:
    """Standard output of a tool, or of a program that imports it; it must not complain."""
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed, so it was not run on the simulated NVML: pip install {tool}")
    command = [sys.executable, *(["-c", code] if code else ["-m", tool, *arguments])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def gpustat(environment: dict[str, str]) -> dict[str, Any]:
    """What `gpustat --json` prints."""
    shown: dict[str, Any] = json.loads(output_of("gpustat", environment, "--json"))
    return shown


def test_gpustat_shows_the_trainer(gpustat: dict[str, Any], pid: int) -> None:
    """Every figure of GPU 0, memory of the card and of the process included."""
    gpu = gpustat["gpus"][0]
    assert gpustat["driver_version"] == "580.105.08"
    want = {"uuid": "GPU-a", "name": NAME, "temperature.gpu": 63, "utilization.gpu": 97, "power.draw": 612, "enforced.power.limit": 700}
    want |= {"memory.used": 52 * 1024, "memory.total": 81559, "fan.speed": None}
    assert {key: gpu[key] for key in want} == want
    assert [(row["pid"], row["gpu_memory_usage"]) for row in gpu["processes"]] == [(pid, 52 * 1024)]


def test_gpustat_shows_what_is_not_available(gpustat: dict[str, Any], pid: int) -> None:
    """A process without a figure, memory that no listed process owns, and sensors that are not there."""
    gpu = gpustat["gpus"][1]
    assert [gpu[key] for key in ("temperature.gpu", "utilization.gpu", "power.draw")] == [None] * 3
    assert [(row["pid"], row["gpu_memory_usage"]) for row in gpu["processes"]] == [(pid, None)]
    assert gpu["memory.used"] == 11 * 1024


def test_gpustat_shows_a_lost_gpu_beside_the_others(gpustat: dict[str, Any]) -> None:
    """Only GPU 2 is lost."""
    assert [gpu["name"] for gpu in gpustat["gpus"]] == [NAME, NAME, "((GPU is lost))", NAME]


def test_nvitop_shows_the_same_on_its_screen(environment: dict[str, str], pid: int) -> None:
    """Cards, memory, N/A, the lost GPU, the MIG instance and the processes of `nvitop --once`."""
    shown = output_of("nvitop", environment, "--once", "--no-unicode")
    lines = [re.sub(r"[ |]+", " ", line).strip() for line in shown.splitlines()]
    want = [
        "Driver Version: 580.105.08 CUDA Driver Version: 13.0",
        "0 H100 80GB HBM3 On 00000000:1B:00.0 N/A Disabled N/A",
        "N/A 63C N/A 612W / 700W 52.00GiB / 79.65GiB 97% N/A",
        "N/A N/A N/A N/A / N/A 11264MiB / 79.65GiB N/A N/A",
        "2 ERROR: GPU is Lost N/A N/A N/A N/A N/A",
        "3 H100 80GB HBM3 Off 00000000:04:00.0 N/A Enabled N/A",
        "3:0 3g.40gb @ GI/CI: 1/0 18432MiB / 39.50GiB BAR1: 1024MiB / 3%",
    ]
    assert [text for text in want if not any(line.endswith(text) for line in lines)] == []
    processes = [line.split() for line in lines if f" {pid} " in line]
    assert [(row[0], row[2], row[4], row[5]) for row in processes] == [
        ("0", "C", "52.00GiB", "88"),
        ("1", "G", "N/A", "N/A"),
        ("3:0", "C", "18432MiB", "0"),
    ]


READ = """
import json
from nvitop import Device
rows = []
for device in (Device(0), Device(1), *Device(3).mig_devices()):
    pids = {pid: str(process.gpu_memory()) for pid, process in device.processes().items()}
    rows.append([device.uuid(), str(device.memory_used()), str(device.memory_total()), pids])
print(json.dumps(rows))
"""


def test_nvitop_reads_a_mig_instance(environment: dict[str, str], pid: int) -> None:
    """By its own structures nvitop reads the same bytes: GPUs, and an instance as a device of its own."""
    assert json.loads(output_of("nvitop", environment, code=READ)) == [
        ["GPU-a", str(52 * GIB), str(81559 * MIB), {str(pid): str(52 * GIB)}],
        ["GPU-b", str(11 * GIB), str(81559 * MIB), {str(pid): "N/A"}],
        ["MIG-e", str(18 * GIB), str(40448 * MIB), {str(pid): str(18 * GIB)}],
    ]


def test_the_tools_leave_our_pynvml_alone() -> None:
    """Both accept the nvidia-ml-py that the agent needs: installing them changes nothing of it."""
    from importlib.metadata import packages_distributions, version

    assert packages_distributions()["pynvml"] == ["nvidia-ml-py"]
    assert tuple(map(int, version("nvidia-ml-py").split(".")[:2])) >= (12, 535)
    assert Path(str(find_spec("pynvml").origin)).name == "pynvml.py"  # type: ignore[union-attr]  # it is installed, as was just seen
