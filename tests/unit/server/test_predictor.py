"""Names of predictions; what the predictor does with them is tested over gRPC."""

from __future__ import annotations

import time
import uuid

from peakgate.server.predictor import new_name


def test_a_name_is_a_uuid_that_begins_with_its_time() -> None:
    """Version 7 and the variant of RFC 9562, milliseconds since the epoch, and no two alike."""
    before = time.time_ns() // 1_000_000
    names = [new_name() for _ in range(1000)]
    after = time.time_ns() // 1_000_000
    found = [uuid.UUID(name.removeprefix("predictions/")) for name in names]
    assert {(each.version, each.variant) for each in found} == {(7, uuid.RFC_4122)}
    assert all(before <= each.int >> 80 <= after for each in found)
    assert len(set(names)) == 1000


def test_names_of_later_moments_sort_later() -> None:
    """As text, which is how a database orders them."""
    first = new_name()
    time.sleep(0.002)
    assert first < new_name()
