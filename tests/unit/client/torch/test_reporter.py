"""The reporter on an allocator of arithmetic."""

from __future__ import annotations

import os
import threading
import time
import traceback
from pathlib import Path

import pytest
from tests.unit.client.torch.fakes import BARE_UUID, GIB, Clock, FakeCuda, Inbox, OutOfMemoryError

from peakgate.client.torch.reporter import Reporter
from peakgate.client.torch.telling import REFRESH_SECONDS
from peakgate.v1.allocator_report import AllocatorReport


class Training:
    """A loop on the fake: 16 GiB of weights, 40 of activations, optimizer states in the first step."""

    def __init__(self, inbox: Inbox | None, **options: object) -> None:
        self.cuda = FakeCuda()
        self.clock = Clock()
        path = inbox.path if inbox else "/nonexistent/agent.sock"
        self.reporter = Reporter(cuda=self.cuda, clock=self.clock, socket_path=path, **options)  # type: ignore[arg-type]  # options of Reporter
        self.cuda.allocate(16 * GIB)

    def step(self, *, activations: int = 40 * GIB) -> None:
        """Forward, backward, optimizer."""
        with self.reporter.phase("forward"):
            self.cuda.allocate(activations)
        with self.reporter.phase("backward"):
            self.cuda.use(6 * GIB)
            self.cuda.free(activations)
        with self.reporter.phase("optimizer"):
            if not self.reporter.steps_done:
                self.cuda.allocate(8 * GIB)
            self.cuda.use(GIB)
        self.reporter.step()
        self.clock.now += 1.5


def phases(report: AllocatorReport) -> dict[str, tuple[float, float]]:
    """(allocated, reserved) in GiB by phase."""
    return {each.phase: (each.allocated_bytes / GIB, each.reserved_bytes / GIB) for each in report.phases}


def test_growth_belongs_to_the_phase_that_it_happened_in(inbox: Inbox) -> None:
    """The weights are loading's, the height of the first step backward's, that of the second backward's again with the states."""
    training = Training(inbox)
    training.step()
    training.step()
    training.reporter.close()
    report = inbox.reports()[-1]
    assert (report.allocated_bytes / GIB, report.reserved_bytes / GIB, report.steps_done) == (70, 70, 2)
    assert phases(report) == {"load": (16, 16), "forward": (64, 64), "backward": (70, 70)}
    assert report.gpu_uuid == f"GPU-{BARE_UUID}"


def test_the_programs_own_readings_are_left_alone(inbox: Inbox) -> None:
    """Observe-only: the peak statistics are never reset."""
    training = Training(inbox)
    training.step()
    training.reporter.close()
    assert training.cuda.resets == 0
    assert training.cuda.allocated_peak == 62 * GIB


def test_each_phase_has_its_exact_peak_when_resets_are_allowed(inbox: Inbox) -> None:
    """With reset_peaks the optimizer, which never is the highest, has a figure too; the total is the same."""
    training = Training(inbox, reset_peaks=True)
    for _ in range(3):
        training.step()
    training.reporter.close()
    report = inbox.reports()[-1]
    assert phases(report) == {"load": (16, 16), "forward": (64, 70), "backward": (70, 70), "optimizer": (25, 70)}
    assert report.allocated_bytes / GIB == 70


def test_a_still_allocator_sends_nothing_but_the_steps_now_and_then(inbox: Inbox) -> None:
    """After the first steps a datagram goes only when REFRESH_SECONDS are over, so that a killed process leaves its steps behind."""
    training = Training(inbox)
    for _ in range(3):
        training.step()
    inbox.reports()
    training.step()
    assert inbox.reports() == []
    training.clock.now += REFRESH_SECONDS
    training.step()
    assert [report.steps_done for report in inbox.reports()] == [4]


def test_growth_is_told_at_most_so_often_and_at_the_end(inbox: Inbox) -> None:
    """An allocator that grows all the time gives one datagram an interval; what is left goes with the last one."""
    training = Training(inbox, interval_seconds=10.0)
    for each in range(4):
        training.step(activations=(30 + each) * GIB)
    assert len(inbox.reports()) == 1
    training.reporter.close()
    training.reporter.close()
    reports = inbox.reports()
    assert [(report.steps_done, report.allocated_bytes / GIB) for report in reports] == [(4, 63)]


def test_an_out_of_memory_error_is_told_at_once_and_goes_through_untouched(inbox: Inbox) -> None:
    """The error and its traceback are the training's; it is counted once through nested phases, and the peak is what was held."""
    training = Training(inbox, interval_seconds=1000.0)
    training.step()
    inbox.reports()
    with (
        pytest.raises(OutOfMemoryError, match="Tried to allocate") as raised,
        training.reporter.phase("forward"),
        training.reporter.phase("loss"),
    ):
        training.cuda.allocate(100 * GIB)
    assert raised.value.__context__ is None
    assert [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)][-1] == "allocate"
    reports = inbox.reports()
    assert [(report.ooms, report.retries, report.steps_done) for report in reports] == [(1, 1, 1)]


def test_an_error_that_is_caught_inside_is_seen_by_the_counter(inbox: Inbox) -> None:
    """num_ooms says it, whoever catches the exception."""
    training = Training(inbox)
    with pytest.raises(OutOfMemoryError):
        training.cuda.allocate(100 * GIB)
    training.reporter.step()
    assert inbox.reports()[-1].ooms == 1


def test_the_async_allocator_counts_by_the_exception(inbox: Inbox) -> None:
    """cudaMallocAsync keeps no num_ooms: what was raised counts, and the backend is named."""
    training = Training(inbox)
    training.cuda.backend = "cudaMallocAsync"
    with pytest.raises(OutOfMemoryError), training.reporter.phase("forward"):
        raise OutOfMemoryError
    report = inbox.reports()[-1]
    assert (report.ooms, report.backend) == (1, "cudaMallocAsync")


def test_the_length_of_the_batch_with_the_most_tokens_is_kept(inbox: Inbox) -> None:
    """A long sequence in a small last batch is not what the peak comes from."""
    training = Training(inbox)
    for length, micro_batch in ((1024, 8), (2048, 8), (4096, 1)):
        training.reporter.saw(length, micro_batch)
    training.step()
    assert inbox.reports()[-1].longest_sequence == 2048


def test_nothing_is_read_or_opened_before_the_training_opens_cuda(inbox: Inbox) -> None:
    """A process without CUDA stays without it, and reports nothing."""
    cuda = FakeCuda()
    cuda.opened = False
    reporter = Reporter(cuda=cuda, socket_path=inbox.path)
    with reporter.phase("forward"):
        pass
    reporter.step()
    reporter.close()
    assert (cuda.reads, reporter.failures, inbox.reports()) == (0, 0, [])


def test_without_an_agent_datagrams_are_dropped_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """No agent on the node: not a word, not an exception."""
    training = Training(None)
    training.step()
    training.reporter.close()
    assert (training.reporter.dropped > 0, training.reporter.failures, capsys.readouterr().err) == (True, 0, "")


def test_an_agent_that_is_behind_never_holds_up_the_training(inbox: Inbox) -> None:
    """A full queue drops datagrams; the send does not wait."""
    training = Training(inbox, interval_seconds=0.0)
    began = time.monotonic()
    for each in range(2000):
        training.reporter.saw(each)
        training.reporter.step()
    assert training.reporter.dropped > 0
    assert time.monotonic() - began < 10


def test_an_agent_that_comes_back_gets_what_it_missed(tmp_path: Path) -> None:
    """Figures only grow, so the next datagram says all."""
    path = tmp_path / "agent.sock"
    cuda, clock = FakeCuda(), Clock()
    reporter = Reporter(cuda=cuda, clock=clock, socket_path=str(path))
    cuda.allocate(40 * GIB)
    reporter.step()
    inbox = Inbox(path)
    clock.now += REFRESH_SECONDS
    reporter.step()
    assert [(report.reserved_bytes, report.steps_done) for report in inbox.reports()] == [(40 * GIB, 2)]
    inbox.socket.close()


def test_a_second_training_of_a_process_has_only_its_own_growth(inbox: Inbox) -> None:
    """In a notebook or a sweep: what an earlier training reached is not what the next one needs."""
    cuda = FakeCuda()
    first = Reporter(cuda=cuda, socket_path=inbox.path, prediction="predictions/a")
    cuda.use(50 * GIB)
    first.close()
    second = Reporter(cuda=cuda, socket_path=inbox.path, prediction="predictions/b")
    cuda.use(30 * GIB)
    second.step()
    assert [(report.prediction, report.allocated_bytes / GIB, report.training) for report in inbox.reports()] == [("predictions/a", 50, 0)]
    cuda.use(60 * GIB)
    second.close()
    assert [(report.prediction, report.allocated_bytes / GIB, report.training) for report in inbox.reports()] == [("predictions/b", 60, 1)]


def test_what_goes_wrong_inside_is_told_once_and_stays_inside(inbox: Inbox, capsys: pytest.CaptureFixture[str]) -> None:
    """An allocator with other keys, a phase that does not exist: one line, and the training goes on."""

    class Strange(FakeCuda):
        def memory_stats_as_nested_dict(self, device: int) -> dict[str, object]:
            return {"something": "else"}

    reporter = Reporter(cuda=Strange(), socket_path=inbox.path)
    for _ in range(3):
        with reporter.phase("forwards"):
            pass
        reporter.step()
    reporter.close()
    err = capsys.readouterr().err
    assert (err.count("\n"), "KeyError" in err, reporter.failures > 3) == (1, True, True)
    known = Reporter(cuda=FakeCuda(), socket_path=inbox.path)
    with known.phase("forwards"):
        pass
    assert "phase 'forwards' is not one of load forward" in capsys.readouterr().err


def test_an_old_torch_that_cannot_name_the_gpu_leaves_it_open(inbox: Inbox) -> None:
    """The agent then takes the only GPU of the process."""
    cuda = FakeCuda(uuid=None)
    reporter = Reporter(cuda=cuda, socket_path=inbox.path)
    cuda.allocate(GIB)
    reporter.step()
    assert inbox.reports()[-1].gpu_uuid == ""


@pytest.mark.parametrize("name", ["predictions/p1", "6f1a3a0e-9d0c-4e0b-8f6e-6b1d8c1f7a55"])
def test_settings_of_the_environment_are_reported(inbox: Inbox, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The prediction that the submission stamped on the job, or the uid on its pod, and how the allocator was set up."""
    monkeypatch.setenv("PEAKGATE_PREDICTION", name)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    training = Training(inbox)
    training.step()
    report = inbox.reports()[-1]
    assert (report.prediction, report.conf) == (name, "expandable_segments:True")


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # Python 3.12 warns of what is tried here
def test_a_forked_child_reports_for_itself(inbox: Inbox) -> None:
    """It opens a socket of its own and counts its own steps; a lock that another thread of the parent held does not stop it."""
    training = Training(inbox)
    training.step()
    training.step()
    inbox.reports()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with training.reporter._lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        training.step()
        training.reporter.close()
        os._exit(0 if training.reporter.steps_done == 1 else 1)
    _, status = os.waitpid(child, 0)
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert [report.steps_done for report in inbox.reports()][-1] == 1
    assert training.reporter.steps_done == 2


def test_threads_may_share_a_reporter(inbox: Inbox) -> None:
    """No step is lost between two threads."""
    training = Training(inbox)
    threads = [threading.Thread(target=lambda: [training.reporter.step() for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert training.reporter.steps_done == 2000


def test_a_step_with_three_phases_is_seven_readings() -> None:
    """Where a phase begins and ends, and at the end of the step; what that costs is in tests/bench."""
    training = Training(None)
    training.step()
    reads = training.cuda.reads
    training.step()
    assert training.cuda.reads - reads == 7
