"""The client over a real channel: order, retries, timeouts, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from tests.unit.client.service import Service, running_service

from peakgate.client.connect import IN_FLIGHT, Asker, Client, connect, open_client
from peakgate.client.errors import InputError, PeakgateError, ServiceError
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict
from peakgate.v1.training_job_pb2 import TrainingJob


@pytest.fixture
def service_and_client() -> Iterator[tuple[Service, Client]]:
    """A service and a client of it."""
    with running_service() as (service, target), connect(target) as client:
        yield service, client


def a_job(name: str) -> TrainingJob:
    """A job that the service answers by its name."""
    return TrainingJob(name=name)


def reasons(outcomes: Iterator[PredictResponse | PeakgateError]) -> list[str]:
    """What was answered, in order."""
    return [outcome.reason for outcome in outcomes]


def test_predict_sends_a_request_id(service_and_client: tuple[Service, Client]) -> None:
    """Each call carries an id of its own, so that a repeat is not stored twice."""
    service, client = service_and_client
    assert client.predict(a_job("REJECT")).verdict == Verdict.VERDICT_REJECT
    client.predict(a_job("REJECT"))
    first, second = (request.request_id for request in service.requests)
    assert len(first) == 36
    assert first != second


def test_an_unavailable_service_is_asked_again(service_and_client: tuple[Service, Client]) -> None:
    """Two refusals are survived, with the same request id each time."""
    service, client = service_and_client
    assert client.predict(a_job("flaky 2")).reason == "about flaky 2"
    assert len({request.request_id for request in service.requests}) == 1
    assert len(service.requests) == 3


def test_a_service_that_stays_away_is_an_error() -> None:
    """Nobody listens on the port: UNAVAILABLE, which is exit status 4."""
    with running_service() as (_, target):
        pass
    with connect(target) as client, pytest.raises(ServiceError) as raised:
        client.predict(a_job("x"))
    assert raised.value.code == "UNAVAILABLE"
    assert raised.value.exit_status == 4


def test_a_call_ends_at_its_timeout() -> None:
    """A service that does not answer holds nobody up."""
    with running_service() as (_, target), connect(target, predict_timeout_seconds=0.2) as client:
        started = time.monotonic()
        with pytest.raises(ServiceError) as raised:
            client.predict(a_job("asleep"))
    assert raised.value.code == "DEADLINE_EXCEEDED"
    assert time.monotonic() - started < 1.5


def test_bad_fields_come_through(service_and_client: tuple[Service, Client]) -> None:
    """ErrorInfo's reason and every field violation are read out of the status, and mean exit status 2."""
    _, client = service_and_client
    with pytest.raises(ServiceError) as raised:
        client.predict(a_job("bad"))
    assert raised.value.as_dict() == {
        "error": {
            "code": "INVALID_ARGUMENT",
            "reason": "FIELD_INVALID",
            "message": "one bad field",
            "fields": [{"field": "batch.micro_batch_size", "description": "is -1, needs at least 1"}],
        }
    }
    assert raised.value.exit_status == 2


def test_an_error_without_details_keeps_its_code(service_and_client: tuple[Service, Client]) -> None:
    """A plain INTERNAL is the service's fault: exit status 4."""
    _, client = service_and_client
    with pytest.raises(ServiceError) as raised:
        client.predict(a_job("crash"))
    assert (raised.value.reason, raised.value.exit_status) == ("INTERNAL", 4)


def test_a_batch_keeps_its_order(service_and_client: tuple[Service, Client]) -> None:
    """Slow and fast jobs come back in the order in which they were sent, an error in its place."""
    _, client = service_and_client
    error = InputError("no job")
    jobs = [a_job(f"slow-{n}") if n % 3 else a_job(f"fast-{n}") for n in range(60)]
    outcomes = list(client.predict_each([*jobs[:30], error, a_job("bad"), *jobs[30:]]))
    assert outcomes[30] is error
    assert isinstance(outcomes[31], ServiceError)
    want = [f"about {job.name}" for job in jobs]
    assert [outcome.reason for outcome in outcomes if isinstance(outcome, PredictResponse)] == want


def test_a_batch_is_pipelined_within_bounds(service_and_client: tuple[Service, Client]) -> None:
    """Calls overlap, but never more than the bound (one may be with the reader, one with the sender)."""
    service, client = service_and_client
    reasons(client.predict_each(a_job(f"slow-{n}") for n in range(100)))
    assert 2 <= service.most_running <= IN_FLIGHT + 2


def test_an_answer_does_not_wait_for_the_next_job(service_and_client: tuple[Service, Client]) -> None:
    """A program that writes a job, reads its answer and only then writes the next one is served."""
    _, client = service_and_client
    answered = threading.Event()

    def jobs() -> Iterator[TrainingJob]:
        yield a_job("first")
        assert answered.wait(10)
        yield a_job("second")

    outcomes = client.predict_each(jobs())
    assert reasons(iter([next(outcomes)])) == ["about first"]
    answered.set()
    assert reasons(outcomes) == ["about second"]


def test_a_fault_of_the_source_is_raised(service_and_client: tuple[Service, Client]) -> None:
    """What goes wrong while jobs are read is not swallowed by the thread that reads them."""
    _, client = service_and_client

    def jobs() -> Iterator[TrainingJob]:
        yield a_job("first")
        raise RuntimeError("broken source")

    with pytest.raises(RuntimeError, match="broken source"):
        list(client.predict_each(jobs()))


def test_who_asks_and_why_travel_with_each_job(service_and_client: tuple[Service, Client]) -> None:
    """Of one job and of many; nobody is asked for by default."""
    service, client = service_and_client
    asker = Asker(user="c/1000", try_reason="it fits")
    client.predict(a_job("REJECT"), asker=asker)
    list(client.predict_each([a_job("REJECT")], asker=asker))
    client.predict(a_job("REJECT"))
    assert [(each.user, each.try_reason) for each in service.requests] == [("c/1000", "it fits")] * 2 + [("", "")]


def test_a_list_is_read_page_by_page(service_and_client: tuple[Service, Client]) -> None:
    """All pages are read up to the limit."""
    _, client = service_and_client
    assert [each.prediction for each in client.list_predictions(limit=4)] == [f"predictions/{n}" for n in range(4)]
    assert len(client.list_predictions(limit=100)) == 5


def test_a_server_and_a_database_exclude_each_other() -> None:
    """A server has its own database; naming both is a mistake that is said."""
    with pytest.raises(InputError, match="exclude"), open_client("localhost:1", "sqlite:///x"):
        pass


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """PEAKGATE_SERVER is used when nothing is said."""
    with running_service() as (_, target):
        monkeypatch.setenv("PEAKGATE_SERVER", target)
        with open_client() as client:
            assert client.predict(a_job("ADMIT")).verdict == Verdict.VERDICT_ADMIT
