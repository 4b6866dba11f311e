"""Bodies and connections that nobody should send: none gets a 5xx, none a wrong denial, and the next review is answered as ever."""

from __future__ import annotations

import contextlib
import json
import socket
import time

import pytest
from tests.admission_reviews import RULES, a_review
from tests.fuzzed_reviews import bodies, faults_of
from tests.webhooks import PATH, RunningWebhook

FUZZED = 250
"""Of twenty thousand in `make bench`."""

GOOD = json.dumps(a_review(operation="UPDATE")).encode()


def is_well(webhook: RunningWebhook) -> bool:
    """Whether a review is answered."""
    return webhook.ask(GOOD)["allowed"] is True


def test_fuzzed_bodies_are_answered_or_refused(webhook: RunningWebhook) -> None:
    """A verdict, or 400 for what is no review; never a 5xx, never a denial without ground."""
    webhook.rules(RULES.replace('"enforced-*"', '"enforced-*", team-a'))
    faults = []
    with contextlib.closing(webhook.connection()) as connection:
        for number, body in enumerate(bodies(20, FUZZED)):
            connection.request("POST", PATH, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            faults += [f"{number}: {fault}" for fault in faults_of(body, response.status, response.read())]
    webhook.rules(RULES)
    assert faults == []
    assert "fault in the webhook" not in webhook.log


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "want_status"),
    [
        ("GET", PATH, b"", {}, 405),
        ("PUT", PATH, GOOD, {"Content-Type": "application/json"}, 405),
        ("POST", PATH, GOOD, {"Content-Type": "text/plain"}, 415),
        ("POST", PATH, GOOD, {}, 415),
        ("POST", PATH, GOOD, {"Content-Type": "application/json; charset=utf-8"}, 200),
        ("POST", PATH, b"", {"Content-Type": "application/json"}, 400),
        ("POST", PATH, b"{}", {"Content-Type": "application/json"}, 400),
        ("POST", PATH, GOOD.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"), {"Content-Type": "application/json"}, 400),
        ("POST", PATH, b" " * (5 << 20), {"Content-Type": "application/json"}, 413),
        ("POST", "/mutate", GOOD, {"Content-Type": "application/json"}, 200),
        ("POST", "/nothing", GOOD, {"Content-Type": "application/json"}, 404),
        ("GET", "/healthz", b"", {}, 200),
        ("GET", "/readyz", b"", {}, 200),
        ("GET", "/metrics", b"", {}, 404),
        ("POST", "/healthz", b"", {}, 405),
    ],
)
def test_only_reviews_are_reviewed(
    webhook: RunningWebhook, method: str, path: str, body: bytes, headers: dict[str, str], want_status: int
) -> None:
    """By POST, as JSON, of a size that one has."""
    try:
        status, _ = webhook.send(method, path, body, headers)
    except (ConnectionError, OSError):
        status = 413 if want_status == 413 else 0  # the answer was overtaken by the end of the connection
    assert status == want_status
    assert is_well(webhook)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff" * 100,
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["noise", "version", "negative length", "two lengths", "huge length", "long head", "broken chunk"],
)
def test_what_is_no_http_is_cut(webhook: RunningWebhook, sent: bytes) -> None:
    """With a 4xx where one can be sent; the connection ends, and no other is harmed."""
    with webhook.socket() as connection:
        connection.sendall(sent)
        answer = connection.recv(65536)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert is_well(webhook)


def test_slow_senders_are_cut_and_hold_nobody_up(webhook: RunningWebhook) -> None:
    """One that never shakes hands, one that drips its head, one that drips its body: reviews pass meanwhile, and each is cut in seconds."""
    silent = socket.create_connection(("localhost", webhook.port), timeout=10.0)
    head, body = webhook.socket(), webhook.socket()
    body.sendall(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
    began = time.monotonic()
    is_open = {head, body}
    while is_open and time.monotonic() - began < 15.0:
        for each in tuple(is_open):
            try:
                each.sendall(b"P" if each is head else b" ")
            except OSError:
                is_open.discard(each)
        assert is_well(webhook)
        time.sleep(0.2)
    assert not is_open
    assert silent.recv(1) == b""
    silent.close()
    head.close()
    body.close()


def test_an_answer_is_one_piece_on_a_connection_that_stays(webhook: RunningWebhook) -> None:
    """A second request on the same connection is answered without the forty milliseconds of a delayed acknowledgement."""
    connection = webhook.connection()
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        connection.request("POST", PATH, GOOD, {"Content-Type": "application/json"})
        assert connection.getresponse().read()
        seconds.append(time.perf_counter() - began)
    connection.close()
    assert sorted(seconds)[len(seconds) // 2] < 0.03
