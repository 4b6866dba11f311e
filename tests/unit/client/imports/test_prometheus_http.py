"""A Prometheus that answers strangely, or not at all."""

from __future__ import annotations

import json
import socket

import pytest

from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.imports.prometheus_http import _data, _series, query_range


def asked(url: str) -> object:
    """One query, to its end."""
    return list(query_range(url, "up", start=0, end=60, step_seconds=60, window_seconds=3600, timeout_seconds=5.0))


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://prometheus", "http://", "http://[::1"])
def test_what_is_no_address_is_told(url: str) -> None:
    """Before anything is asked."""
    with pytest.raises(InputError, match="state http://HOST:PORT"):
        asked(url)


def test_nobody_there_is_told_in_the_systems_words() -> None:
    """Without the name of an exception."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(PeakgateError) as caught:
            asked(f"http://127.0.0.1:{free.getsockname()[1]}")
    assert caught.value.message == "Prometheus: [Errno 111] Connection refused"


@pytest.mark.parametrize(
    "series", ["text", 7, {"values": 7}, {"values": [[1]]}, {"values": [["a", "b"]]}, {"values": [None]}, {"metric": [1], "values": []}]
)
def test_a_series_that_is_none_is_told(series: object) -> None:
    """Whatever stands between may answer with anything."""
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}).encode()
    with pytest.raises(PeakgateError, match="holds a series that is none"):
        list(_series(_data(body)))
