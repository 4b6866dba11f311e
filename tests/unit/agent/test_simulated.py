"""The simulated library and its scenarios."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest
from tests.contract.sources import ROOT
from tests.unit.agent.builders import GIB, ONE_GPU

from peakgate.agent.errors import MissingPartError, UsageError
from peakgate.agent.simulated.clock import CLOCK_VARIABLE, SharedClock
from peakgate.agent.simulated.library import NO_COMPILER, SimulatedNvml, compiled_library, environment_for, source_texts
from peakgate.agent.simulated.scenario import scenario_text, shipped_scenarios


@pytest.mark.parametrize("name", shipped_scenarios())
def test_each_shipped_scenario_is_understood(simulated: SimulatedNvml, name: str) -> None:
    """Every scenario that ships loads, and has GPUs."""
    simulated.load(scenario_text(name))
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() >= 2
    pynvml.nvmlShutdown()


def test_a_caller_sets_the_variables_of_a_scenario() -> None:
    """The pid of a live process and the height of its peak come from outside."""
    text = scenario_text("demo,PID=123,PEAK=61G")
    assert "process 0 pid=123 memory=0:520M,1:14G,2.5:61G,8:end" in text.splitlines()


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ("nowhere", "no scenario 'nowhere'"),
        ("demo,COLOUR=red", "no variable COLOUR. It has: PEAK, PID, SECONDS"),
        ("demo,PID", "'PID' is not NAME=VALUE"),
        ("demo,PID=", "'PID=' is not NAME=VALUE"),
    ],
)
def test_a_scenario_that_cannot_be_is_said(spec: str, want: str) -> None:
    """The error names what is wrong and what there is."""
    with pytest.raises(UsageError) as caught:
        scenario_text(spec)
    assert want in str(caught.value)


def test_a_scenario_may_be_a_file(tmp_path: Path) -> None:
    """Comments and defaults go, line numbers stay, so that an error names the line of the file."""
    path = tmp_path / "mine.scn"
    path.write_text("# mine\nlet SIZE=80G\ngpu 0 uuid=GPU-x total=$SIZE # the card\n")
    assert scenario_text(f"{path},SIZE=40G") == "\n\ngpu 0 uuid=GPU-x total=40G\n"


def test_a_variable_that_is_not_set_is_said(tmp_path: Path) -> None:
    """A typo in a variable is not a silent zero."""
    path = tmp_path / "mine.scn"
    path.write_text("gpu 0 uuid=GPU-x total=$SIZ\n")
    with pytest.raises(UsageError, match="SIZ"):
        scenario_text(str(path))


@pytest.mark.parametrize(
    "line",
    [
        "gpux 0 uuid=GPU-x total=1G",
        "gpu 0 uuid=GPU-x",
        "gpu 0 uuid=GPU-x total=1G colour=red",
        "mig 5 uuid=MIG-x total=1G",
        "process 0 pid=1",
        "process 0 pid=1 memory=1G",
        "process 0 pid=1 memory=3:1G,2:2G",
        "error none",
        "speed 0",
        "driver",
        "event 0 when=3",
        "gpu 1 uuid=GPU-x total=1Gx",
        "gpu 1 uuid=GPU-x total=-1G",
        "gpu 1 uuid=GPU-x total=nan",
        "gpu 1 uuid=GPU-x total=1e30",
        "gpu 1 uuid=GPU-x total=1G reserved=2G",
        "gpu 1 uuid=GPU-x total=1G accounting=perhaps",
        "gpu one uuid=GPU-x total=1G",
        "process 0 pid=1 memory=0:1G kind=compute+video",
        "process 0 pid=1 memory=0:1G" + ",1:1G" * 32,
        "latency -1",
        "privileged NA",
        "driver 1 2",
    ],
)
def test_a_line_that_is_not_understood_is_named(simulated: SimulatedNvml, line: str) -> None:
    """The number and the text of the first bad line."""
    with pytest.raises(UsageError, match="line 3 ") as caught:
        simulated.load(f"{ONE_GPU}\n{line}\n")
    assert line in str(caught.value)


def test_every_word_of_the_grammar_is_documented() -> None:
    """The page names each directive and each key that the reader knows."""
    page = (ROOT / "docs" / "simulated-nvml.md").read_text()
    words = re.findall(r'"(\w+)", read_', source_texts()["scenario.c"].decode())
    assert len(words) > 40
    assert [word for word in words if not re.search(rf"\b{word}\b", page)] == []


def test_accounting_knows_the_exact_peak_after_the_end(simulated: SimulatedNvml) -> None:
    """Like a driver with accounting mode on: the maximum outlives the process; the latest process of a pid wins."""
    first = "process 0 pid=7 memory=0:1G,2:60G,2.1:3G,5:end\n"
    simulated.load(ONE_GPU.replace("reserved", "accounting=on reserved") + first + "process 0 pid=7 memory=10:9G,12:end\n")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    for time, want in ((6.0, 60 * GIB), (13.0, 9 * GIB)):
        simulated.set_time(time)
        stats = pynvml.nvmlDeviceGetAccountingStats(handle, 7)
        assert (stats.maxMemoryUsage, stats.isRunning) == (want, 0)
    pynvml.nvmlShutdown()


def test_an_xid_event_is_delivered_once(simulated: SimulatedNvml) -> None:
    """The event comes when its time has come, with its number, and then no more."""
    simulated.load(f"{ONE_GPU}event 0 at=5 type=0x8 data=79\n")
    simulated.set_time(4)
    pynvml.nvmlInit()
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.nvmlEventTypeXidCriticalError, events)
    got = []
    for time in (4, 6, 7):
        simulated.set_time(time)
        try:
            got.append(int(pynvml.nvmlEventSetWait_v2(events, 0).eventData))
        except pynvml.NVMLError as error:
            got.append(-int(error.value))
    assert got == [-pynvml.NVML_ERROR_TIMEOUT, 79, -pynvml.NVML_ERROR_TIMEOUT]
    pynvml.nvmlShutdown()


def a_program(library: Path, scenario: Path, code: str, clock: SharedClock | None = None) -> subprocess.CompletedProcess[str]:
    """An unmodified program on the library, as `import pynvml as n` and then `code`."""
    environment = environment_for(library, scenario) | (clock.environment if clock else {})
    program = [sys.executable, "-c", f"import pynvml as n\n{code}"]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=False)


def test_another_program_reads_the_scenario_by_the_environment(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """An unmodified program with LD_LIBRARY_PATH sees the scripted GPU, at the scripted speed."""
    scenario = tmp_path / "fast.scn"
    scenario.write_text(f"speed 1e9\n{ONE_GPU}process 0 pid=7 memory=0:1G,1000:5G\n")
    program = (
        "n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0);"
        "p = n.nvmlDeviceGetComputeRunningProcesses(h)[0]; print(n.nvmlDeviceGetName(h), p.pid, p.usedGpuMemory >> 30)"
    )
    assert a_program(simulated.path, scenario, program).stdout == "NVIDIA H100 80GB HBM3 7 5\n"


def test_a_program_is_told_of_a_scenario_that_cannot_be_used(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """A file that is not there, a line that is wrong and a clock that is none are said on standard error."""
    bad = tmp_path / "bad.scn"
    bad.write_text(f"{ONE_GPU}gpux 3\n")
    (tmp_path / "short").write_bytes(b"1234")
    clock = SharedClock(tmp_path / "clock")
    clock.environment = {CLOCK_VARIABLE: str(tmp_path / "short")}
    assert "nowhere.scn cannot be read" in a_program(simulated.path, tmp_path / "nowhere.scn", "n.nvmlInit()").stderr
    assert "bad.scn: line 2 is not understood" in a_program(simulated.path, bad, "n.nvmlInit()").stderr
    assert "the clock" in a_program(simulated.path, bad, "n.nvmlInit()", clock).stderr


def test_one_clock_moves_several_programs(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """What one process writes is the time of the others at once; the scripted memory follows it."""
    scenario = tmp_path / "day.scn"
    scenario.write_text(f"{ONE_GPU}process 0 pid=7 memory=0:1G,86000:5G\n")
    clock = SharedClock(tmp_path / "clock")
    environment = environment_for(simulated.path, scenario) | clock.environment
    loop = "import pynvml as n\nn.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0)\nwhile input() == 'read':"
    loop += "\n print(n.nvmlDeviceGetComputeRunningProcesses(h)[0].usedGpuMemory >> 30, flush=True)"
    programs = [
        subprocess.Popen([sys.executable, "-c", loop], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    seen = []
    for second in (0.0, 86_000.0, 10.0):
        clock.set_time(second)
        for program in programs:
            assert program.stdin
            assert program.stdout
            print("read", file=program.stdin, flush=True)
            seen.append(int(program.stdout.readline()))
    for program in programs:
        program.communicate("end\n")
    assert seen == [1, 1, 5, 5, 1, 1]


def test_a_program_that_starts_after_the_update_gets_the_new_driver(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The old program hears LIB_RM_VERSION_MISMATCH until it replaces itself; the new one runs."""
    scenario = tmp_path / "update.scn"
    scenario.write_text(f"driver 580.65.06\ndriver 590.10 from=60\n{ONE_GPU}")
    clock = SharedClock(tmp_path / "clock", 59)
    renewed = (
        "import os, struct, sys\nn.nvmlInit(); print(n.nvmlSystemGetDriverVersion(), flush=True)\n"
        "open(os.environ['PEAKGATE_SIMULATED_NVML_CLOCK'], 'r+b').write(struct.pack('d', 61))\n"
        "try: n.nvmlDeviceGetCount()\n"
        "except n.NVMLError as error:\n"
        " print(error.value, flush=True); n.nvmlShutdown()\n"
        " os.execv(sys.executable, [sys.executable, '-c', 'import pynvml as n; n.nvmlInit(); print(n.nvmlSystemGetDriverVersion())'])\n"
    )
    done = a_program(simulated.path, scenario, renewed, clock)
    assert done.stdout.split() == ["580.65.06", "18", "590.10"]


def test_without_a_compiler_the_remedy_is_named(tmp_path: Path) -> None:
    """The error says what to install."""
    with pytest.raises(MissingPartError) as caught:
        compiled_library(cache=tmp_path, compiler="no-such-compiler")
    assert NO_COMPILER in str(caught.value)


def test_a_compiler_that_fails_leaves_no_library(tmp_path: Path) -> None:
    """The next call compiles again: no half-made file is taken for a library."""
    with pytest.raises(MissingPartError, match="could not compile"):
        compiled_library(cache=tmp_path, compiler="false")
    assert list(tmp_path.rglob("*.so.1")) == []


def test_the_library_is_compiled_once(simulated: SimulatedNvml) -> None:
    """A second use takes the file of the first, without a compiler."""
    cache = simulated.path.parents[2]
    assert compiled_library(cache=cache, compiler="no-such-compiler") == simulated.path
