"""A prediction before step 0: by a child process, in one line, within its time, and never the training's trouble."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.unit.client.live.fakes import llama
from tests.unit.client.torch.fakes import FakeCuda, OutOfMemoryError, an_inbox
from tests.unit.client.torch.test_batches import tensor

from peakgate.client.torch import ask, loop, ranks
from peakgate.client.torch.accelerate import watch as watch_accelerate
from peakgate.client.torch.batches import Shape
from peakgate.client.torch.reporter import Reporter
from peakgate.client.torch.training import RejectedError, Training

JOB = {"model": {"preset": "gpt2"}}
SAYS = "import json, sys; job = json.loads(sys.stdin.read()); print(json.dumps({answer}))"


def echoing(*paths: str) -> str:
    """A program that answers with these fields of the job."""
    return SAYS.format(answer=f"{{'verdict': 'ADMIT', 'reason': ' '.join(str(job[each]) for each in {paths}), 'prediction': ''}}")


ADMITS = SAYS.format(answer={"verdict": "ADMIT", "reason": "fits", "prediction": "predictions/own"})
REJECTS = SAYS.format(answer={"verdict": "REJECT", "reason": "needs 90 GB", "prediction": "predictions/own"})


@pytest.fixture
def reporter() -> Reporter:
    """Without an agent."""
    return Reporter(cuda=FakeCuda(), socket_path="/nonexistent/agent.sock")


def a_training(reporter: Reporter, **options: object) -> Training:
    """Of a job that can be read."""
    return Training(lambda shape: JOB, reporter=reporter, **options)  # type: ignore[arg-type]  # options of Training


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What it said on standard error."""
    return capsys.readouterr().err.splitlines()


def test_the_answer_is_one_line_and_names_the_reports(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked once, before the first batch; the name of the prediction goes with the reports from then on."""
    monkeypatch.setattr(ask, "PROGRAM", ADMITS)
    training = a_training(reporter)
    for _ in range(3):
        training.batch(Shape(4, 128))
    assert (reporter.prediction, lines(capsys)) == ("predictions/own", ["peakgate: ADMIT: fits"])


def test_the_submissions_prediction_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the queue stamped on the job is what its observation belongs to; a second training of the process is another one."""
    monkeypatch.setenv("PEAKGATE_PREDICTION", "predictions/queue")
    monkeypatch.setattr(ask, "PROGRAM", ADMITS)
    names = []
    for _ in range(2):
        training = a_training(Reporter(cuda=FakeCuda(), socket_path="/nonexistent/agent.sock"))
        training.batch()
        names.append(training.reporter.prediction)
    assert names == ["predictions/queue", "predictions/own"]


def test_a_rejection_warns_or_raises(reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As the caller wants it; by default it is a line."""
    monkeypatch.setattr(ask, "PROGRAM", REJECTS)
    a_training(reporter).batch()
    with pytest.raises(RejectedError, match="needs 90 GB"):
        a_training(reporter, on_reject="raise").batch()
    assert lines(capsys) == ["peakgate: REJECT: needs 90 GB"] * 2
    with pytest.raises(ValueError, match="use warn or raise"):
        a_training(reporter, on_reject="stop")


def test_a_training_waits_no_longer_than_the_limit(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service that does not answer costs the limit, once."""
    monkeypatch.setattr(ask, "PROGRAM", "import time; time.sleep(60)")
    training = a_training(reporter, time_limit_seconds=0.3)
    began = time.monotonic()
    training.batch()
    training.batch()
    assert time.monotonic() - began < 10
    assert lines(capsys) == ["peakgate: no prediction, the training goes on: no answer within 0.3 s"]


@pytest.mark.parametrize(
    ("program", "want"),
    [
        ("raise SystemExit('peakgate: the command needs typer')", "`peakgate predict` failed: peakgate: the command needs typer"),
        ("pass", "`peakgate predict` failed: nothing was said"),
        ("print('no json')", "`peakgate predict` failed: nothing was said"),
        ("print('[1]')", "`peakgate predict` failed: nothing was said"),
        ('print(\'{"error": {"message": "model.preset: unknown"}}\')', "model.preset: unknown"),
    ],
)
def test_a_child_that_fails_is_one_line(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, want: str
) -> None:
    """Whatever it printed, the training goes on."""
    monkeypatch.setattr(ask, "PROGRAM", program)
    a_training(reporter, on_reject="raise").batch()
    assert lines(capsys) == [f"peakgate: no prediction, the training goes on: {want}"]


def test_a_job_that_cannot_be_read_is_one_line(reporter: Reporter, capsys: pytest.CaptureFixture[str]) -> None:
    """A model of somebody's own may raise anything."""

    def read_job(shape: Shape) -> Mapping[str, object]:
        raise AttributeError("no such thing")

    Training(read_job, reporter=reporter).batch()
    assert lines(capsys) == ["peakgate: no prediction, the training goes on: AttributeError('no such thing')"]


def test_nothing_is_asked_where_nobody_wants_it(reporter: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """`predict=False` only reports."""
    monkeypatch.setattr(ask, "ask", None)
    training = a_training(reporter, predict=False)
    training.batch(Shape(4, 128))
    assert (training.answer, reporter.failures) == (None, 0)


class Store:
    """The table beside a process group."""

    def __init__(self) -> None:
        self.table: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        """As torch's."""
        self.table[key] = value.encode()

    def get(self, key: str) -> bytes:
        """As torch's."""
        return self.table[key]

    def wait(self, keys: list[str], limit: timedelta) -> None:
        """As torch's: an error when the keys do not come in time."""
        if not self.table.keys() >= set(keys):
            raise TimeoutError(f"wait timeout after {limit}")


def a_group(monkeypatch: pytest.MonkeyPatch, store: Store, *, rank: int, size: int = 2) -> None:
    """A process group is open in this process."""
    distributed = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: rank,
        get_world_size=lambda: size,
        distributed_c10d=SimpleNamespace(_get_default_store=lambda: store),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=distributed))


def test_the_other_ranks_take_rank_0s_answer(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the store, without a child and without a line; a rejection ends them as it ends rank 0."""
    monkeypatch.setattr(ask, "PROGRAM", REJECTS)
    store, first = Store(), a_training(reporter)
    a_group(monkeypatch, store, rank=0)
    first.batch()
    a_group(monkeypatch, store, rank=1)
    second = a_training(Reporter(cuda=FakeCuda(), socket_path="/nonexistent"), on_reject="raise")
    second._number = first._number
    monkeypatch.setattr(ask, "PROGRAM", "raise SystemExit(1)")
    with pytest.raises(RejectedError):
        second.batch()
    assert (second.reporter.prediction, lines(capsys)) == ("predictions/own", ["peakgate: REJECT: needs 90 GB"])


def test_a_rank_without_an_answer_goes_on(reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Rank 0 may be slow, or not be watched: one line, no prediction."""
    a_group(monkeypatch, Store(), rank=1)
    a_training(reporter).batch()
    assert (reporter.prediction, len(lines(capsys))) == ("", 1)


def test_a_name_that_the_other_ranks_cannot_know_stays_off_the_reports(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranks without a process group: the observation of rank 0's GPU alone is not that of the fullest GPU."""
    monkeypatch.setattr(ask, "PROGRAM", ADMITS)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "0")
    a_training(reporter).batch()
    assert (reporter.prediction, lines(capsys)) == ("", ["peakgate: ADMIT: fits"])


@pytest.mark.parametrize(("environment", "want"), [({}, 0), ({"RANK": "3"}, 3), ({"SLURM_PROCID": "2"}, 2), ({"RANK": "x"}, 0)])
def test_a_rank_without_a_process_group(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], want: int) -> None:
    """What the launcher says."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    for name in ranks.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ranks.rank() == want


def test_a_loop_counts_its_optimizer_steps(reporter: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two micro-batches a step, over two epochs; the job is read with the first batch's sizes."""
    monkeypatch.setattr(ask, "PROGRAM", echoing("batch.micro_batch_size", "batch.sequence_length"))
    batches = [{"input_ids": tensor(4, 128)}, {"input_ids": tensor(4, 256)}]
    training = loop.watch(llama(), gradient_accumulation_steps=2, gpu="h100-80gb", reporter=reporter)
    for _ in range(2):
        assert list(training.batches(batches)) == batches
    assert training.answer
    assert (training.answer.reason, reporter.steps_done) == ("4 128", 2)


def test_accelerate_says_when_a_step_was_done(reporter: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """sync_gradients is true after the last micro-batch, also at an odd end of an epoch; precision and ranks are the accelerator's."""
    monkeypatch.setattr(ask, "PROGRAM", echoing("precision.recipe", "parallelism.world_size"))
    accelerator = SimpleNamespace(gradient_accumulation_steps=2, mixed_precision="bf16", num_processes=8, sync_gradients=False)
    training = watch_accelerate(accelerator, llama(), reporter=reporter)
    for number, _ in enumerate(training.batches([{"input_ids": tensor(4, 128)}] * 3)):
        accelerator.sync_gradients = number in (1, 2)
    assert training.answer
    assert (training.answer.reason, reporter.steps_done) == ("amp-bf16 8", 2)


def test_a_loop_as_a_context_tells_what_ended_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An out-of-memory error goes through, and is told before the process has a chance to vanish."""
    with an_inbox(tmp_path_factory.mktemp("s")) as inbox:
        cuda = FakeCuda()
        reporter = Reporter(cuda=cuda, socket_path=inbox.path)

        def train() -> None:
            with loop.watch(llama(), predict=False, reporter=reporter) as training:
                for _ in training.batches([None]):
                    cuda.allocate(1 << 50)

        with pytest.raises(OutOfMemoryError):
            train()
        assert [report.ooms for report in inbox.reports()] == [1]
