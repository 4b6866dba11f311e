"""Range queries of a Prometheus over HTTP (prometheus.io/docs, "HTTP API": /api/v1/query_range)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from peakgate.client.errors import InputError, PeakgateError

LARGEST_ANSWER_BYTES = 256 << 20
"""A day of one sample a minute of 10,000 GPUs is 150 MB."""

POINTS = 10_000
"""Of a series in one query; Prometheus refuses more than 11,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: its labels, and (seconds since the epoch, value) in order of time."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


def query_range(
    url: str, query: str, *, start: int, end: int, step_seconds: int, window_seconds: int, timeout_seconds: float
) -> Iterator[Series]:
    """The series of a query, in pieces of `window_seconds`. Raises InputError for a bad address, PeakgateError when it does not answer."""
    if not _is_address(url):
        raise InputError(f"{url!r} is no address of a Prometheus: state http://HOST:PORT", reason="USAGE")
    window = min(window_seconds, POINTS * step_seconds)
    for first in range(start, end + 1, window):
        last = min(first + window - step_seconds, end)
        words = urlencode({"query": query, "start": first, "end": last, "step": step_seconds})
        yield from _series(_answer(f"{url.rstrip('/')}/api/v1/query_range?{words}", timeout_seconds))


def _is_address(url: str) -> bool:
    try:
        address = urlsplit(url)
    except ValueError:  # a bracket that is not closed
        return False
    return address.scheme in ("http", "https") and bool(address.hostname)


def _answer(url: str, timeout_seconds: float) -> object:
    try:
        with urlopen(Request(url, headers={"Accept": "application/json"}), timeout=timeout_seconds) as response:  # noqa: S310 - http or https
            body = response.read(LARGEST_ANSWER_BYTES + 1)
    except HTTPError as error:
        with error:
            text = error.read(2000).decode(errors="replace")
        raise _away(f"HTTP {error.code}: {text[:300]}") from error
    except (OSError, HTTPException) as error:
        raise _away(str(getattr(error, "reason", error))) from error  # of a URLError, what was behind it
    if len(body) > LARGEST_ANSWER_BYTES:
        raise _away(f"an answer is larger than {LARGEST_ANSWER_BYTES >> 20} MB: narrow the selection, or take a longer --step")
    return _data(body)


def _data(body: bytes) -> object:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise _away(f"the answer is no JSON: {body[:80]!r}") from error
    if not isinstance(document, dict) or document.get("status") != "success":
        raise _away(f"the answer is no success: {str(document)[:300]}")
    return document.get("data")


def _series(data: object) -> Iterator[Series]:
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(result, list):
        raise _away("the answer is no matrix of series")
    for each in result:
        yield _one(each)


def _one(each: Any) -> Series:
    try:
        points = tuple((float(moment), float(value)) for moment, value in each.get("values", ()))
        return Series(labels=dict(each.get("metric", {})), points=points)
    except (AttributeError, TypeError, ValueError) as error:
        raise _away("the answer holds a series that is none") from error


def _away(cause: str) -> PeakgateError:
    return PeakgateError(f"Prometheus: {cause}", code="UNAVAILABLE", reason="PROMETHEUS_UNAVAILABLE")
