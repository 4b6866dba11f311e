"""What the agent does about each code of NVML, on the real pynvml over the simulated library."""

from __future__ import annotations

import pynvml
import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GIB, GPU, ONE_GPU, OTHER_GPU, TWO_GPUS, SimulatedNode

from peakgate.agent.errors import NvmlError
from peakgate.agent.reactions import RULES, WHOLE_NODE, Reaction, rule_of
from peakgate.agent.samples import GpuGone, ProcessSample, ReadFailed, Sample
from peakgate.agent.simulated.library import SimulatedNvml

TRAINER = "process 0 pid=7 memory=0:1G\n"
LISTS = "nvmlDeviceGetComputeRunningProcesses_v3"


def kinds(samples: list[Sample], gpu: str = GPU) -> set[type]:
    """What kinds of samples a GPU gave between seconds 3 and 8, while the call failed."""
    return {type(sample) for sample in samples if sample.gpu.uuid == gpu and 3 <= (sample.clock or 0) < 8}


def test_the_codes_are_those_of_pynvml() -> None:
    """Every row of the table is a code of NVML, under the number that pynvml gives it."""
    names = {value: name for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_") and isinstance(value, int)}
    assert set(RULES) <= set(names)
    assert names[12] == "NVML_ERROR_LIBRARY_NOT_FOUND"
    assert rule_of(18).reaction is Reaction.new_process


def test_a_code_that_is_not_in_the_table_is_a_gap() -> None:
    """What a later driver answers ends nothing."""
    assert rule_of(4711).reaction is Reaction.gap


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.reaction is Reaction.gap])
def test_a_gap_ends_nothing(simulated: SimulatedNvml, code: int) -> None:
    """The list is said to have failed, the GPU stays, and the next reading that works is a reading."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}{TRAINER}error {code} function={LISTS} gpu=0 from=3 until=8\n")
    with capture_logs() as logs:
        samples = node.run(12)
    assert ReadFailed in kinds(samples)
    assert not kinds(samples) & {ProcessSample, GpuGone}
    assert ProcessSample in kinds(samples, OTHER_GPU)
    assert any(isinstance(sample, ProcessSample) and (sample.clock or 0) > 9 for sample in samples)
    said = [entry["remedy"] for entry in logs if entry["event"] == "nvml call failed"]
    assert said == [rule_of(code).remedy]


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.reaction is Reaction.gpu_gone])
def test_a_lost_gpu_is_one_gpu(simulated: SimulatedNvml, code: int) -> None:
    """It is gone once, its neighbour is read on, and it is found again at a look around."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error {code} gpu=0 from=3 until=30\n")
    samples = node.run(20)
    assert sum(isinstance(sample, GpuGone) for sample in samples) == 1
    assert (set(node.sampler.watched.lost), set(node.sampler.gpus)) == ({GPU}, {OTHER_GPU})
    node.run(110)
    assert (set(node.sampler.watched.lost), set(node.sampler.gpus)) == (set(), {GPU, OTHER_GPU})


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.reaction in WHOLE_NODE])
def test_what_is_about_the_whole_node_ends_the_turn(simulated: SimulatedNvml, code: int) -> None:
    """No GPU is called lost for it."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error {code} from=3\n")
    with pytest.raises(NvmlError) as caught:
        node.run(20)
    assert caught.value.code == code
    assert set(node.sampler.gpus) == {GPU, OTHER_GPU}


def test_a_list_that_outgrew_its_buffer_is_fetched_once_more(simulated: SimulatedNvml) -> None:
    """A single burst of processes between the two calls costs no sample."""
    samples = SimulatedNode(simulated, f"{ONE_GPU}{TRAINER}late_processes 50 times=1\n").run(3)
    assert not any(isinstance(sample, ReadFailed) for sample in samples)


@pytest.mark.parametrize("code", [13, 25])
def test_a_driver_without_the_third_list_is_asked_for_the_second(simulated: SimulatedNvml, code: int) -> None:
    """Once; afterwards only the second version is called. A list that exists in no version is passed over."""
    error = "".join(f"error {code} function=nvmlDeviceGet{kind}RunningProcesses_v3\n" for kind in ("Compute", "Graphics", "MPSCompute"))
    node = SimulatedNode(simulated, ONE_GPU + TRAINER + error + f"error {code} function=nvmlDeviceGetMPSComputeRunningProcesses_v2\n")
    used = {one.used_bytes for sample in node.run(3) if isinstance(sample, ProcessSample) for one in sample.processes}
    assert used == {GIB}
    simulated.calls(LISTS)
    node.run(30)
    assert simulated.calls(LISTS) == 0


def test_a_destroyed_mig_instance_is_gone_and_a_new_one_found(simulated: SimulatedNvml) -> None:
    """Handles of a destroyed instance are invalid: it is not asked again, its neighbour is; the layout is looked at each minute."""
    old, new, kept = (f"MIG-00000000-0000-4000-8000-00000000000{end}" for end in "abc")
    scenario = (
        f"{ONE_GPU}mig 0 uuid={old} total=20G gi=1 ci=0 until=10\nmig 0 uuid={kept} total=20G gi=2 ci=0\n"
        f"mig 0 uuid={new} total=40G gi=3 ci=0 from=10\nprocess 0 pid=7 gi=3 ci=0 memory=11:18G\n"
    )
    node = SimulatedNode(simulated, scenario)
    samples = node.run(90)
    assert [sample.gpu.uuid for sample in samples if isinstance(sample, GpuGone)] == [old]
    assert set(node.sampler.gpus) == {kept, new}
    assert node.sampler.watched.lost == {}
    assert node.sampler.gpus[new].instance == 3
    assert any(isinstance(sample, ProcessSample) and sample.gpu.uuid == new and sample.processes for sample in samples)
