"""Which versions are known, and which share the bucket."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.calibration import versions as table
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


def test_what_is_everybodys_takes_the_place_of_one_users_own() -> None:
    """Whoever works through builds and keeps them all in use holds the table only until a second user runs another one."""
    versions = known("2.9")
    for index in range((NAMES - 1) * OWN_ROWS):
        versions.meet(f"2.10.dev{index // OWN_ROWS}", user="eve")
    versions.meet("2.10.dev1", user="ada")
    assert len(versions.numbers) == NAMES
    for _ in range(OWN_ROWS):
        versions.meet("own", user="eve")
    assert "own" not in versions.numbers
    assert [versions.meet("2.10", user=user) != BUCKET for user in ("ada", "bob")] == [False, True]
    assert {"2.9", "2.10", "2.10.dev1", "2.10.dev2"} <= set(versions.numbers)
    assert "2.10.dev0" not in versions.numbers


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


ROWS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(("", "ada", "eve"))), max_size=120)


@given(rows=ROWS)
def test_laws_of_a_small_table(rows: list[tuple[str, str]]) -> None:
    """Of two places that are free after eight rows: it is bounded, a number is one name's for ever, nobody makes a version known with a row
    or two of their own, what two users ran of late stays, and a restart before any row changes nothing."""
    names: dict[int, str] = {}
    users_since: dict[int, set[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"NAMES": 2, "CANDIDATES": 2, "KEPT_ROWS": 8, "OWN_ROWS": 3}.items():
            patch.setattr(table, name, value)
        goes_on, restarted = Versions(), Versions()
        for place, (version, user) in enumerate(rows):
            before = goes_on.numbers
            restarted = Versions.from_state(json.loads(json.dumps(restarted.state())))
            number = goes_on.meet(version, user=user)
            assert restarted.meet(version, user=user) == number == goes_on.numbers.get(version, BUCKET)
            assert restarted.state() == goes_on.state()
            assert len(goes_on.numbers) <= 2
            if number != BUCKET:
                assert names.setdefault(number, version) == version
                stated = [by for each, by in rows[: place + 1] if each == version]
                assert len(stated) >= 3 or (len(stated) == 2 and ("" in stated or len(set(stated)) == 2))
                users_since.setdefault(number, set()).add(user)
            for gone in before.keys() - goes_on.numbers.keys():
                rows_ago = next(ago for ago in range(place + 1) if rows[place - ago][0] == gone)
                assert rows_ago >= 8 or (len(users_since[before[gone]]) == 1 and "" not in users_since[before[gone]])


def test_the_state_round_trips() -> None:
    """Through JSON, candidates and all."""
    versions = known("2.9", "2.10")
    for _ in range(OWN_ROWS):
        versions.meet("own", user="eve")
    versions.meet("nightly", user="eve")
    again = Versions.from_state(json.loads(json.dumps(versions.state())))
    assert again.state() == versions.state()
    assert [row[-1] for row in again.state()[2]] == ["", "", "eve"]  # type: ignore[attr-defined]  # a list of rows
    assert again.meet("nightly", user="ada") == versions.meet("nightly", user="ada") != BUCKET


@pytest.mark.parametrize("state", [[], [1, 2, [], {}], [1.5, 2, [], []], [1, 2, [["2.9"]], []], [1, 2, [], [["2.9", "ada", "x", 1]]]])
def test_a_state_that_is_none_is_refused(state: list[object]) -> None:
    """Too short, of wrong types, rows that are none."""
    with pytest.raises((TypeError, ValueError)):
        Versions.from_state(state)
