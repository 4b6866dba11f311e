"""Which versions are known, and which share the bucket."""

from __future__ import annotations

import json

import pytest

from peakgate.calibration.versions import BUCKET, CANDIDATES, KEPT_ROWS, NAMES, OWN_ROWS, Versions


def known(*names: str) -> Versions:
    """A table in which these are known, the first one's row the oldest."""
    versions = Versions()
    for name in names:
        versions.meet(name, user="ada")
        versions.meet(name, user="eve")
    return versions


def test_a_version_is_known_from_its_second_user_on() -> None:
    """Of one user alone from the tenth row on; of an unknown user, who may be another each time, from the second."""
    assert [Versions().meet("2.9", user="ada"), Versions().meet("", user="ada")] == [BUCKET, BUCKET]
    versions = known("2.9")
    assert versions.meet("2.9", user="bob") == versions.numbers["2.9"] != BUCKET
    assert [versions.meet("nightly", user="eve") != BUCKET for _ in range(OWN_ROWS)] == [False] * (OWN_ROWS - 1) + [True]
    assert [versions.meet("2.10", user="") != BUCKET for _ in range(2)] == [False, True]


def test_a_name_a_job_is_never_known() -> None:
    """A thousand of them fill nothing, and push out nobody else's candidate."""
    versions = known("2.9")
    versions.meet("2.10", user="ada")
    for index in range(1000):
        assert versions.meet(f"2.11.dev{index}", user="eve") == BUCKET
    assert set(versions.numbers) == {"2.9"}
    assert versions.meet("2.10", user="bob") != BUCKET


def test_candidates_are_few() -> None:
    """Whoever made them up: with a user each the oldest gives way."""
    versions = Versions()
    for index in range(CANDIDATES + 1):
        versions.meet(f"name-{index}", user=f"user-{index}")
    assert versions.meet("name-0", user="other") == BUCKET
    assert versions.meet(f"name-{CANDIDATES}", user="other") != BUCKET


def test_a_full_table_keeps_what_is_in_use() -> None:
    """A place is free when its version was not seen for as long as scores are kept; until then the newcomer stays in the bucket."""
    versions = known(*(f"2.{index}" for index in range(NAMES)))
    numbers = dict(versions.numbers)
    versions.meet("new", user="ada")
    assert versions.meet("new", user="eve") == BUCKET
    for index in range(KEPT_ROWS):
        versions.meet(f"2.{1 + index % (NAMES - 1)}", user="ada")
    assert versions.meet("new", user="eve") == max(numbers.values()) + 1
    assert set(numbers) - set(versions.numbers) == {"2.0"}
    assert len(versions.numbers) == NAMES


def test_a_number_is_given_once() -> None:
    """A version that comes again after it gave way has another one: what levels hold under the old one is nobody's."""
    versions = known(*(f"2.{index}" for index in range(NAMES)))
    first = versions.numbers["2.0"]
    for index in range(KEPT_ROWS):
        versions.meet(f"2.{1 + index % (NAMES - 1)}", user="ada")
    for user in ("ada", "eve"):
        versions.meet("new", user=user)
    assert "2.0" not in versions.numbers
    for index in range(KEPT_ROWS):
        versions.meet(f"2.{2 + index % (NAMES - 2)}", user="ada")
    assert [versions.meet("2.0", user=user) for user in ("ada", "eve")] == [BUCKET, first + NAMES + 1]


def test_the_state_round_trips() -> None:
    """Through JSON, candidates and all."""
    versions = known("2.9", "2.10")
    versions.meet("nightly", user="eve")
    again = Versions.from_state(json.loads(json.dumps(versions.state())))
    assert again.state() == versions.state()
    assert again.meet("nightly", user="ada") == versions.meet("nightly", user="ada") != BUCKET


@pytest.mark.parametrize("state", [[], [1, 2, [], {}], [1.5, 2, [], []], [1, 2, [["2.9"]], []], [1, 2, [], [["2.9", "ada", "x", 1]]]])
def test_a_state_that_is_none_is_refused(state: list[object]) -> None:
    """Too short, of wrong types, rows that are none."""
    with pytest.raises((TypeError, ValueError)):
        Versions.from_state(state)
