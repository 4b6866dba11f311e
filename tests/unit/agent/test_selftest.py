"""The checks of a node's NVML: all pass on a healthy node, and each finds its fault and names what to do."""

from __future__ import annotations

import os

import pytest
from tests.unit.agent.builders import GPU, H100, ONE_GPU, START, TWO_GPUS

from peakgate.agent.errors import UsageError
from peakgate.agent.selftest.finding import Finding, Outcome, listed
from peakgate.agent.selftest.run import FIRST_CHECKS, GPU_CHECKS, findings, selftest
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.simulated.scenario import scenario_text

ME = f"process 0 pid={os.getpid()}"
ON = ONE_GPU.replace("reserved", "accounting=on persistence=on reserved") + f"epoch {START}\n"
MIG = f"{ONE_GPU}mig 0 uuid=MIG-a total=40G gi=1 ci=0\n"


def found_on(simulated: SimulatedNvml, scenario: str, *, at: float = 5.0) -> dict[str, Finding]:
    """What the checks find on this scenario, by name."""
    simulated.load(scenario)
    simulated.set_time(at)
    return {each.name: each for each in findings(wall=lambda: START + at)}


def test_every_check_passes_on_a_healthy_node(simulated: SimulatedNvml) -> None:
    """The scenario that ships as healthy has nothing to note, with each kind of list, accounting and MIG in it."""
    simulated.load(scenario_text(f"healthy,PID={os.getpid()}"))
    found = {each.name: each for each in findings()}
    assert {name: each.outcome for name, each in found.items() if each.outcome is not Outcome.passed} == {}
    assert len(found) == len(FIRST_CHECKS + GPU_CHECKS) + 2, "a finding each, and those of the binding and of opening NVML"
    assert found["lists"].seen == "compute: 2, graphics: 1, MPS: 0"
    assert found["accounting"].seen == "1 exact peaks can be read"
    assert found["mig"].seen == "2 instances: GI 1 CI 0, GI 2 CI 0"


@pytest.mark.parametrize(
    ("name", "scenario", "outcome", "seen"),
    [
        ("opens", f"{ONE_GPU}error 9 function=nvmlInitWithFlags\n", Outcome.noted, "no NVML on this machine"),
        ("opens", f"{ONE_GPU}error 12 function=nvmlInitWithFlags\n", Outcome.noted, "no NVML on this machine"),
        ("opens", f"driver 580.65.06\ndriver 590.10 from=1\n{ONE_GPU}", Outcome.failed, "updated under this library"),
        ("opens", f"{ONE_GPU}error 4 function=nvmlInitWithFlags\n", Outcome.failed, "code 4"),
        ("versions", f"driver 535.43.02 cuda=12.2\n{ONE_GPU}", Outcome.failed, "misreads"),
        ("versions", f"driver 535.54.03 cuda=12.2\n{ONE_GPU}", Outcome.failed, "misreads"),
        ("versions", f"driver 535.86.05 cuda=12.2\n{ONE_GPU}", Outcome.passed, "NVML 12.535.86.05"),
        ("versions", f"driver 530.30.02 cuda=12.1\n{ONE_GPU}", Outcome.passed, "driver 530.30.02"),
        ("gpus", f"{TWO_GPUS}error 15 gpu=1\n", Outcome.failed, "another does not"),
        ("gpus", "driver 580.65.06\n", Outcome.noted, "none on this node"),
        ("memory", f"gpu 0 uuid={GPU} {H100}\nerror 3 function=nvmlDeviceGetMemoryInfo_v2\n", Outcome.noted, "no memory of its own"),
        ("memory", f"{ONE_GPU}error 13 function=nvmlDeviceGetMemoryInfo_v2\n", Outcome.noted, "only the older call"),
        ("gpus", f"{ONE_GPU}error 999 function=nvmlDeviceGetMemoryInfo_v2\n", Outcome.failed, "none answer"),
        ("memory", f"{ONE_GPU.strip()} mig=on\n", Outcome.noted, "no device to ask"),
        ("lists", f"{ONE_GPU}{ME} memory=0:NA kind=mps\n", Outcome.noted, "MPS: 1; 1 without a figure"),
        ("lists", f"{ONE_GPU}error 3 function=nvmlDeviceGetComputeRunningProcesses_v3\n", Outcome.noted, "compute: not supported"),
        ("lists", f"{ONE_GPU}error 3 function=nvmlDeviceGetMPSComputeRunningProcesses_v3\n", Outcome.passed, "MPS: not supported"),
        ("lists", f"{ONE_GPU}{ME} memory=0:1G\nerror 13 function=nvmlDeviceGetComputeRunningProcesses_v3\n", Outcome.passed, "compute: 1"),
        ("lists", f"{ONE_GPU}{ME} memory=0:1G\nlate_processes 9\n", Outcome.failed, "code 7"),
        ("pids", f"{ONE_GPU}process 0 pid=4999001 memory=0:1G\n{ME} memory=0:1G\n", Outcome.failed, "1 of 2 are not in /proc: 4999001"),
        ("pids", ONE_GPU, Outcome.noted, "no process"),
        ("attributed", f"{ONE_GPU}{ME} memory=0:1G\nprocess 0 pid=0 memory=0:5G\n", Outcome.noted, f"5.00 GiB of {GPU}"),
        ("attributed", f"{ONE_GPU}{ME} memory=0:NA\nprocess 0 pid=0 memory=0:5G\n", Outcome.passed, "no GPU holds"),
        ("attributed", f"{ONE_GPU}{ME} memory=0:5G kind=compute+graphics\n", Outcome.passed, "no GPU holds"),
        ("accounting", ONE_GPU, Outcome.noted, f"off on {GPU}"),
        ("accounting", ON.replace("persistence=on", ""), Outcome.noted, "without persistence"),
        ("accounting", f"{ONE_GPU.strip()} accounting=unsupported\n", Outcome.passed, "0 exact peaks"),
        ("accounting", MIG, Outcome.passed, "0 exact peaks"),
        ("accounting", f"{ON}{ME} memory=0:1G\nerror 6 function=nvmlDeviceGetAccountingStats\n", Outcome.passed, "1 exact peaks"),
        ("accounting", f"{ON}{ME} memory=0:1G\nerror 4 function=nvmlDeviceGetAccountingStats\n", Outcome.failed, "code 4"),
        ("accounting", f"{ON}epoch 0\n{ME} memory=0:1G\n", Outcome.failed, "began at 0 s, which is no wall time"),
        ("accounting", f"{ON}epoch {START + 99}\n{ME} memory=0:1G\n", Outcome.failed, "which is no wall time"),
        ("mig", f"{ONE_GPU.strip()} mig=on\n", Outcome.noted, "without an instance"),
        ("mig", f"{MIG}error 4 function=nvmlDeviceGetMigDeviceHandleByIndex\n", Outcome.failed, "code 4"),
        ("mig", f"{ONE_GPU.strip()} mig=unsupported\n", Outcome.passed, "no GPU is divided"),
        ("events", f"{ONE_GPU}error 3 function=nvmlDeviceRegisterEvents\n", Outcome.failed, "code 3"),
        ("events", f"{TWO_GPUS}error 15 gpu=1\n", Outcome.passed, "Xid errors of 1 GPUs"),
        ("call times", f"{ONE_GPU}latency 20000 function=nvmlDeviceGetComputeRunningProcesses_v3\n", Outcome.noted, "process lists"),
    ],
)
def test_each_fault_is_found(simulated: SimulatedNvml, name: str, scenario: str, outcome: Outcome, seen: str) -> None:
    """The check of that name ends so, says what it saw, and a fault has a remedy."""
    finding = found_on(simulated, scenario)[name]
    assert finding.outcome is outcome, finding
    assert seen in finding.seen
    assert finding.remedy or outcome is Outcome.passed or "none on this node" in seen


def test_one_check_that_fails_does_not_stop_the_others(simulated: SimulatedNvml) -> None:
    """With every list broken, the rest still has its findings."""
    broken = "".join(f"error 999 function=nvmlDeviceGet{kind}RunningProcesses_v3\n" for kind in ("Compute", "Graphics"))
    found = found_on(simulated, f"{ONE_GPU}{broken}")
    assert {name for name, each in found.items() if each.outcome is Outcome.failed} == {"lists", "pids", "attributed", "call times"}
    assert found["events"].outcome is Outcome.passed


def test_without_nvml_nothing_else_is_said(simulated: SimulatedNvml) -> None:
    """The machine of a person who only submits: which pynvml, and that there is no NVML."""
    assert list(found_on(simulated, f"{ONE_GPU}error 9\n")) == ["binding", "opens"]


def test_the_checks_leave_nvml_as_it_was(simulated: SimulatedNvml) -> None:
    """Closed again, and no event set left: an open session would block a reset of the GPU."""
    found_on(simulated, ONE_GPU)
    assert simulated.calls("nvmlEventSetCreate") == simulated.calls("nvmlEventSetFree") == 1
    assert found_on(simulated, f"{ONE_GPU}error 3 function=nvmlDeviceRegisterEvents\n")["events"].outcome is Outcome.failed
    assert simulated.calls("nvmlEventSetFree") == 1


def test_a_scenario_that_cannot_be_is_said() -> None:
    """The checks do not run on anything else instead."""
    with pytest.raises(UsageError, match="no scenario"):
        selftest("nowhere")


def test_long_lists_are_counted() -> None:
    """Eight bad GPUs are three and a number."""
    assert listed([1, 2, 3]) == "1, 2, 3"
    assert listed(list("abcdefgh")) == "a, b, c and 5 more"
