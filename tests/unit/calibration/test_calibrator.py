"""The calibrator: what it learns, what order and repeats change, what a restart keeps, and that a rebuild is the online state."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.calibration.builders import GB, a_calibrator, a_history, a_subject, an_observation, bound_gb

from peakgate.calibration import Calibrator, Observation, replay


def with_versions(rows: list[Observation]) -> list[Observation]:
    """The same on five versions in turn; every seventh states one of its own, every eleventh none."""
    return [
        replace(row, subject=replace(row.subject, version=f"dev{index}" if index % 7 == 0 else f"2.{index % 5}" if index % 11 else ""))
        for index, row in enumerate(rows)
    ]


HISTORIES = st.builds(a_history, st.integers(1, 150), seed=st.integers(0, 1000), shift_gb=st.sampled_from([0.0, 1.5])).map(with_versions)


def test_learning_moves_the_bound_to_the_truth() -> None:
    """Jobs that need 1.5 GB more, or 1 GB less, than predicted: the bound ends a scale or two above."""
    for shift_gb in (1.5, -1.0):
        learned = bound_gb(a_calibrator(a_history(300, shift_gb=shift_gb)))
        assert 40 + shift_gb + 0.35 < learned < 40 + shift_gb + 3 * 0.35


def test_a_job_out_of_memory_above_the_bound_raises_it() -> None:
    """Six on a full card raise an alarm, though none of them tells its need."""
    calibrator = a_calibrator(a_history(100))
    before = bound_gb(calibrator)
    for index in range(6):
        calibrator.learn(an_observation(78, at=200 + index, of=a_subject(required_gb=76, user=f"user-{index}"), exact=False))
    assert bound_gb(calibrator) > before + 0.5
    assert calibrator.alarms == 2


def test_a_job_that_died_early_moves_no_level() -> None:
    """A lower bound far below the prediction says nothing of the need."""
    calibrator = a_calibrator(a_history(100))
    before = calibrator.snapshot()
    calibrator.learn(an_observation(5, at=200, exact=False))
    assert {name: node.theta for name, node in calibrator.snapshot().nodes.items()} == {
        name: node.theta for name, node in before.nodes.items()
    }


def test_every_row_in_its_order_makes_a_new_version() -> None:
    """Epoch and count; a row that is kept out counts against the day, one that comes too late or again changes nothing."""
    calibrator = Calibrator(epoch="7")
    versions = [calibrator.version]
    for observation in (
        an_observation(at=1),
        an_observation(60.1, at=2),
        an_observation(at=2, prediction="predictions/1"),
        an_observation(at=0),
    ):
        calibrator.learn(observation)
        versions.append(calibrator.version)
    assert versions == ["7.0", "7.1", "7.2", "7.2", "7.2"]
    assert calibrator.snapshot().version == "7.2"


def test_rows_without_statistics_are_left_once_there_are_enough_with() -> None:
    """They are not held against the day either."""
    calibrator = a_calibrator(a_history(40, told=True))
    assert calibrator.learn(an_observation(46, at=100)).reason == "LABEL_WEAK"
    assert calibrator.learn(an_observation(35, at=101, exact=False)).learned
    snapshot = calibrator.snapshot()
    assert (snapshot.trust.kept_out_share, snapshot.trust.label_quality) == (0.0, 1.0)


@given(history=HISTORIES, seed=st.integers(0, 1000))
@settings(max_examples=25)
def test_a_rebuild_is_the_online_state(history: list[Observation], seed: int) -> None:
    """Bit for bit, from rows in any order, some of them delivered twice, broken ones among them."""
    online = Calibrator()
    for observation in history:
        online.learn(observation)
    broken = [replace(history[0], finished_at=float("nan")), replace(history[-1], finished_at=1e12, received_at=2.0)]
    rows = [*history, *random.Random(seed).choices(history, k=len(history) // 2), *broken]
    rebuilt = replay(random.Random(seed).sample(rows, len(rows)))
    assert rebuilt.state() == online.state()
    assert rebuilt.snapshot() == online.snapshot()


@given(history=HISTORIES)
@settings(max_examples=25)
def test_the_state_round_trips_through_json(history: list[Observation]) -> None:
    """A restart keeps everything to the last bit, and goes on learning in the same way."""
    half = len(history) // 2
    calibrator = Calibrator(epoch="3")
    for observation in history[:half]:
        calibrator.learn(observation)
    restarted = Calibrator.from_state(json.loads(json.dumps(calibrator.state(), allow_nan=False)))
    assert restarted.snapshot() == calibrator.snapshot()
    for observation in history[half:]:
        assert restarted.learn(observation) == calibrator.learn(observation)
    assert restarted.state() == calibrator.state()
    assert restarted.snapshot() == calibrator.snapshot()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"count": "x"},
        {"nodes": {"framework f": [1]}},
        {"nodes": []},
        {"pool": [[1]]},
        {"pool": [["x", True, "u", "c", "f", "g", 1, "p", 0.5, False]]},
        {"users": {}},
        {"record": [1, 2]},
        {"record": ["x", 0, 0.0, {}]},
        {"curve": [[1.0]]},
        {"curve": None},
    ],
)
def test_a_state_that_cannot_be_read_is_refused(change: dict[str, object]) -> None:
    """The remedy is in the message: the observations are still there."""
    with pytest.raises(ValueError, match="replay the observations"):
        Calibrator.from_state({**Calibrator().state(), **change})
    with pytest.raises(ValueError, match="replay the observations"):
        Calibrator.from_state({})


def test_a_textbook_job_teaches_nobody() -> None:
    """Its figures leave the runtime out; the row is no fault and changes nothing."""
    calibrator = a_calibrator(a_history(50))
    before = calibrator.state()
    assert calibrator.learn(an_observation(48, at=100, of=a_subject(framework="textbook"))).reason == "NO_RESIDUAL"
    assert calibrator.state() == before


def test_versions_that_others_make_up_widen_nobodys_bound() -> None:
    """Forty users with a build of their own a job, half of all rows: the others' bound is what it is without the names."""

    def bound(tag: str) -> float:
        rows = a_history(400, version="torch 2.9")
        builds = (f"{tag}{index}" if tag and index % 2 else "torch 2.9" for index in range(len(rows)))
        rows = [replace(row, subject=replace(row.subject, version=build)) for row, build in zip(rows, builds, strict=True)]
        return bound_gb(a_calibrator(rows), of=a_subject(version="torch 2.9"))

    assert bound("torch 2.10.dev") == bound("")


@pytest.mark.parametrize("users", [("ada",), ("",), ("ada", "eve")], ids=["one user", "unknown users", "two users"])
def test_an_announced_upgrade_is_bounded_higher_from_its_first_job_on(users: tuple[str, ...]) -> None:
    """Whoever runs it, by a scale at least: while its version waits to be known, and for thirty jobs from then on."""
    calibrator, bounds = Calibrator(), list[float]()
    for index, row in enumerate(a_history(300)):
        subject = replace(row.subject, user=users[index % len(users)], version="torch 2.9" if index < 200 else "torch 2.10")
        bounds.append(bound_gb(calibrator, of=a_subject(user=subject.user, version=subject.version)))
        calibrator.learn(replace(row, subject=subject))
    usual, first, settled = bounds[199], bounds[200:230], bounds[299]
    assert min(first) > usual + a_subject().scale
    assert settled < usual + a_subject().scale


def test_sixteen_versions_side_by_side_are_settled() -> None:
    """Run in turn by everybody: no alarm stays open, and the bound is within a tenth of a scale that of one version alone."""

    def after(versions: int) -> Calibrator:
        rows = a_history(800)
        return a_calibrator(
            replace(row, subject=replace(row.subject, version=f"torch 2.{index % versions}")) for index, row in enumerate(rows)
        )

    many, one = after(16), after(1)
    assert many.snapshot().is_unsure(a_subject(version="torch 2.15")) is False
    assert many.alarms - one.alarms <= 2 * 16
    bounds = [bound_gb(each, of=a_subject(version="torch 2.0")) for each in (many, one)]
    assert bounds[0] == pytest.approx(bounds[1], abs=0.1 * a_subject().scale)


def test_a_noisy_group_is_standardised_by_its_own_spread() -> None:
    """Noisier than the scale by 1.6: the shared curve stays near a normal one, and the group's own bounds carry the noise."""
    noisy = a_calibrator(a_history(600, scatter=1.6)).snapshot()
    assert 1.2 < noisy.curve.quantile(0.05) < 2.2
    margins = [noisy.bound(a_subject(group=group), coverage=0.95).bound_bytes / GB - 40 for group in ("h100/fsdp/one", "never")]
    assert margins[0] > 1.2 * margins[1]


def test_a_users_leaning_is_learned() -> None:
    """Whose jobs need a scale more than the others' is bounded higher, and nobody else; a stranger is like the others."""
    rows = a_history(600)
    ours = [
        replace(
            row, lower_bytes=row.lower_bytes + round(row.subject.scale * GB), upper_bytes=row.upper_bytes + round(row.subject.scale * GB)
        )
        if row.subject.user == "user-3" and row.upper_bytes
        else row
        for row in rows
    ]
    calibrator = a_calibrator(ours)
    leaning, honest, stranger = (bound_gb(calibrator, of=a_subject(user=user)) for user in ("user-3", "user-4", "eve"))
    assert leaning - stranger == pytest.approx(a_subject().scale, rel=0.5)
    assert honest == pytest.approx(stranger, abs=0.5 * a_subject().scale)
