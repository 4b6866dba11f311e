"""The driver's accounting: from the simulated library to the row, and what must not be believed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GIB, GPU, H100, START, ProcTree, SimulatedNode, a_gpu, a_list
from tests.unit.agent.test_tracker import SLURM

from peakgate.agent.accounted import Crowds, start_time_of
from peakgate.agent.attribution import Attribution
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.peaks import Flag, PeakRow
from peakgate.agent.proc import ProcFolder
from peakgate.agent.samples import Accounted, AccountingSample, Sample
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.tracker import Tracker

EPOCH = f"epoch {START}\n"
GPU_ON = f"{EPOCH}gpu 0 uuid={GPU} {H100} accounting=on\n"
TICKS = 100


class AccountedNode:
    """A tracker whose processes began so many ticks (hundredths of a second) after the scenario's second 0."""

    def __init__(self, folder: Path) -> None:
        self.proc = ProcTree(folder / "proc")
        proc = ProcFolder(root=self.proc.root)
        attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=folder / "jobs"))
        self.tracker = Tracker(attribution=attribution, proc=proc, boot_id="boot-1", start_time_of=lambda ticks: START + ticks / TICKS)
        self.rows: dict[tuple[int, int, str], PeakRow] = {}

    def add(self, pid: int, *, start_seconds: float = 0.0, job: str = "402") -> None:
        """A process of a Slurm job."""
        self.proc.add(pid, start_ticks=max(1, int(start_seconds * TICKS)), cgroup=SLURM.format(job=job))

    def take(self, samples: list[Sample]) -> None:
        """Keeps the newest row of each (pid, start, source)."""
        for sample in samples:
            for row in self.tracker.take(sample).rows:
                self.rows[row.key.pid, row.key.pid_start_ticks, row.key.source] = row


@pytest.fixture
def node(tmp_path: Path) -> AccountedNode:
    """An empty node."""
    return AccountedNode(tmp_path)


def accounted(samples: list[Sample]) -> list[tuple[int, int, bool]]:
    """(pid, GiB, whether it runs) of every answer, in order."""
    found = [one for sample in samples if isinstance(sample, AccountingSample) for one in sample.processes]
    return [(one.pid, one.peak_bytes // GIB, one.is_running) for one in found]


def test_a_spike_that_no_sample_saw_is_in_the_drivers_account(simulated: SimulatedNvml, node: AccountedNode) -> None:
    """70 GiB for 20 ms: the sampled row misses it, the row of the accounting does not, and both carry the same job."""
    node.add(7)
    simulated_node = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=0:5G,10.51:70G,10.53:5G,20:end\n")
    node.take(simulated_node.run(19))
    node.proc.remove(7)
    node.take(simulated_node.run(25))
    assert {key: (row.peak_bytes // GIB, row.key.job, row.ended) for key, row in node.rows.items()} == {
        (7, 1, "sampled"): (5, "402", True),
        (0, 0, "sampled"): (5, "402", True),
        (7, 1, "accounting"): (70, "402", True),
        (0, 0, "accounting"): (70, "402", True),
    }


def test_who_lives_is_asked_each_minute_and_who_left_at_once(simulated: SimulatedNvml) -> None:
    """An answer a minute while it runs, and one when it has left."""
    samples = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=0:5G,100:9G,200:end\n").run(260)
    assert accounted(samples)[-1] == (7, 9, False)
    assert 3 <= accounted(samples).count((7, 5, True)) + accounted(samples).count((7, 9, True)) <= 5


def test_an_account_that_is_late_is_asked_for_again(simulated: SimulatedNvml) -> None:
    """NOT_FOUND in the first two seconds after the end; given up after three."""
    error = "error 6 function=nvmlDeviceGetAccountingStats_v2 from={} until={}\n"
    late = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=0:5G,10:end\n{error.format(9, 12)}").run(20)
    assert accounted(late)[-1:] == [(7, 5, False)]
    never = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=5:5G,10:end\n{error.format(0, 99)}")
    assert accounted(never.run(20)) == []
    simulated.calls()
    never.run(50)
    assert simulated.calls("nvmlDeviceGetAccountingStats_v2") == 0


def test_an_older_driver_has_the_older_call(simulated: SimulatedNvml) -> None:
    """FUNCTION_NOT_FOUND: the first version of the structure says the same."""
    error = "error 13 function=nvmlDeviceGetAccountingStats_v2\n"
    samples = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=0:5G,10:end\n{error}").run(15)
    assert accounted(samples)[-1] == (7, 5, False)


def test_where_it_is_off_nobody_is_asked(simulated: SimulatedNvml) -> None:
    """Only the mode is looked at, once a minute; when an administrator switches it on, it is used from then."""
    gpu = f"{EPOCH}gpu 0 uuid={GPU} {H100} accounting=0:off,100:on\nprocess 0 pid=7 memory=0:5G,99:end\n"
    node = SimulatedNode(simulated, f"{gpu}process 0 pid=8 memory=150:6G,200:end\n")
    assert accounted(node.run(99)) == []
    assert simulated.calls("nvmlDeviceGetAccountingStats_v2") == 0
    assert accounted(node.run(260))[-1] == (8, 6, False)


def test_it_is_switched_on_where_that_is_wanted(simulated: SimulatedNvml) -> None:
    """As root; and again after the driver lost it. Without the right to, that is said, and the samples go on."""
    gpu = f"{EPOCH}privileged {{}}\ngpu 0 uuid={GPU} {H100} accounting=0:off\nprocess 0 pid=7 memory=5:5G,30:end\n"
    allowed = SimulatedNode(simulated, gpu.format("yes"), enable_accounting=True)
    assert accounted(allowed.run(40))[-1] == (7, 5, False)
    with capture_logs() as logs:
        refused = SimulatedNode(simulated, gpu.format("no"), enable_accounting=True).run(200)
    assert accounted(refused) == []
    said = [entry["remedy"] for entry in logs if entry["event"] == "accounting not read"]
    assert ["root" in remedy for remedy in said] == [True], "said once, with what to do"


def test_mig_has_no_accounting(simulated: SimulatedNvml) -> None:
    """NVIDIA's accounting does not work there, so it is neither asked nor switched on."""
    mig = "MIG-00000000-0000-4000-8000-00000000000a"
    scenario = f"{GPU_ON}mig 0 uuid={mig} total=20G gi=1 ci=0\nprocess 0 pid=7 gi=1 ci=0 memory=0:5G,5:end\n"
    samples = SimulatedNode(simulated, scenario, enable_accounting=True).run(10)
    assert accounted(samples) == []
    assert simulated.calls("nvmlDeviceSetAccountingMode") == 0


def test_a_pid_that_is_used_again_gets_nothing_of_its_predecessor(simulated: SimulatedNvml, node: AccountedNode) -> None:
    """The driver answers with the one that ended first, as its source does: 60 GiB never become the new process's."""
    node.add(7, start_seconds=0.5)
    simulated_node = SimulatedNode(simulated, f"{GPU_ON}process 0 pid=7 memory=1:60G,20:end\nprocess 0 pid=7 memory=90:4G,150:end\n")
    node.take(simulated_node.run(89))
    node.add(7, start_seconds=89.5, job="403")
    node.take(simulated_node.run(149))
    node.proc.remove(7)
    node.take(simulated_node.run(160))
    peaks = {(start, source): row.peak_bytes // GIB for (pid, start, source), row in node.rows.items() if pid}
    assert peaks[50, "accounting"] == 60
    assert peaks[8950, "sampled"] == 4
    assert peaks.get((8950, "accounting"), 4) == 4


def an_answer(start_seconds: float, *, gib: int = 70) -> AccountingSample:
    """What the driver says of pid 7 at second 30."""
    one = Accounted(pid=7, peak_bytes=gib * GIB, start_time=START + start_seconds, is_running=True)
    return AccountingSample(gpu=a_gpu(), time=START + 30, processes=(one,))


@pytest.mark.parametrize(("start_seconds", "want"), [(2, False), (9, True), (14, True), (21, True), (25, False)])
def test_the_start_tells_whose_account_it_is(node: AccountedNode, start_seconds: float, *, want: bool) -> None:
    """Between the process's own start (second 10, /proc) and when it was first seen on the GPU (second 20), two seconds either way."""
    node.add(7, start_seconds=10)
    node.take([a_list(START + 20, {7: GIB}), an_answer(start_seconds)])
    assert ((7, 1000, "accounting") in node.rows) is want


def test_a_process_whose_start_is_not_known_is_not_trusted(node: AccountedNode) -> None:
    """/proc does not show it (another pid namespace)."""
    node.take([a_list(START + 20, {7: GIB}), an_answer(14)])
    assert {source for _, _, source in node.rows} == {"sampled"}


def test_maxima_of_several_processes_are_not_the_jobs(node: AccountedNode) -> None:
    """Two processes at once: each has its own exact peak, the job none, also when one of them is gone."""
    node.add(7)
    node.add(8)
    node.take([a_list(START, {7: 30 * GIB, 8: 5 * GIB})])
    node.proc.remove(8)
    node.take([a_list(START + 1, {7: 30 * GIB}), an_answer(0.5)])
    assert {(pid, source) for pid, _, source in node.rows} == {(0, "sampled"), (7, "sampled"), (8, "sampled"), (7, "accounting")}


def test_an_exact_peak_next_to_the_card_is_censored_and_never_fluctuating(node: AccountedNode) -> None:
    """The samples stayed below 97 % and saw the memory fall; the driver saw the height, and the process has ended."""
    node.add(7)
    node.take([a_list(START + second, {7: height * GIB}) for second, height in enumerate((5, 30, 5, 5))])
    node.proc.remove(7)
    node.take([a_list(START + 5, {}), an_answer(0.5, gib=79)])
    assert node.rows[7, 1, "sampled"].flags == Flag.FLUCTUATING
    assert node.rows[7, 1, "accounting"].flags == Flag.CENSORED


def test_a_crowd_is_remembered_for_a_while() -> None:
    """Bounded, oldest forgotten first."""
    crowds = Crowds()
    for number in range(5000):
        crowds.note(GPU, ("alpha", str(number), 0, ""))
    assert len(crowds._jobs) == 4096


def test_a_start_is_told_in_wall_time() -> None:
    """This process began in the past, and not before the machine."""
    ticks = ProcFolder().start_ticks(os.getpid())
    assert ticks is not None
    assert start_time_of(ticks) - start_time_of(0) > 0
    assert start_time_of(ticks) <= time.time()
