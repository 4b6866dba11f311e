"""Request ids."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.server.errors import PeakgateError
from peakgate.server.requests import SeenRequests, check_request_id


@given(st.lists(st.uuids(), max_size=50))
def test_an_id_that_was_added_is_never_forgotten(ids: list[uuid.UUID]) -> None:
    """A forgotten one would be answered twice."""
    seen = SeenRequests(str(each) for each in ids[: len(ids) // 2])
    for each in ids[len(ids) // 2 :]:
        seen.add(str(each))
    assert all(str(each) in seen for each in ids)


def test_most_new_ids_are_known_to_be_new() -> None:
    """Each that is not costs a look into the database."""
    seen = SeenRequests(str(uuid.UUID(int=number)) for number in range(10_000))
    assert sum(str(uuid.UUID(int=number)) in seen for number in range(10_000, 20_000)) < 10


def test_an_id_must_be_a_uuid() -> None:
    """A job's name would repeat by accident."""
    check_request_id(str(uuid.UUID(int=1)))
    with pytest.raises(PeakgateError):
        check_request_id("job-1")
