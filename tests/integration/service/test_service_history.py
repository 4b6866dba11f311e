"""Versions of the calibration: their names, why they are kept, going back, and that none of it changes a bit of the margin."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.telling import ended

from peakgate.calibration import Calibrator
from peakgate.calibration.calibrator import in_order
from peakgate.server import learning
from peakgate.server.clock import MICROSECONDS
from peakgate.server.margin import Margin
from peakgate.server.memory import memory_model
from peakgate.server.rebuild import rebuilt
from peakgate.server.store import history, thinning
from peakgate.server.subjects import observation_from
from peakgate.v1 import calibration_service_pb2 as pb
from peakgate.v1 import prediction_service_pb2 as prediction_pb
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
DAY = 24 * 3600


async def learned(service: Any, a_job: AJob, second: int, ratio: float = 1.0, **job: Any) -> str:
    """The job that ended at a second was learned; the name of the version that knows it."""
    request = prediction_pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4, **job))
    await ended(service, await service.predictions.Predict(request), second, ratio)
    version: str = (await service.predictions.Predict(request)).calibration.version
    return version


async def listed(service: Any, *, chosen_only: bool = False) -> list[Any]:
    """Versions, newest first."""
    return list((await service.calibration.ListCalibrations(pb.ListCalibrationsRequest(chosen_only=chosen_only))).calibrations)


async def back(service: Any, **wish: str) -> Any:
    """One rollback."""
    return await service.calibration.RollbackCalibration(pb.RollbackCalibrationRequest(**wish))


async def test_no_two_versions_are_called_alike(service: Any, a_job: AJob, database: Database) -> None:
    """Also after a rollback, when as many rows are known as before; answers and rows name the version that they rest on."""
    names = [await learned(service, a_job, second) for second in (1, 2, 3)]
    await back(service)
    again = [await learned(service, a_job, second) for second in (4, 5)]
    epoch = service.core.judge.memory.version
    assert [*names, *again] == [f"{epoch}.{sequence}" for sequence in range(1, 6)]
    await service.core.audit.flush()
    stamped = database.rows("SELECT calibration_version FROM predictions ORDER BY created_us")
    assert {name for (name,) in stamped} == {*names[:3], *again, f"{epoch}.0"}
    for name in (*names, *again):
        found = (await service.calibration.GetCalibration(pb.GetCalibrationRequest(version=name))).calibration
        assert (found.version, found.state) == (name, "active" if name == again[-1] else "retired")


async def test_a_rollback_goes_to_the_newest_version_that_is_kept_for_a_reason(service: Any, a_job: AJob) -> None:
    """Not to the one of a minute ago, and on the line of the active one; the answer says from where, to where, and what is set aside."""
    clock = {"day": 1}
    service.core.learner._clock = lambda: clock["day"] * DAY * MICROSECONDS
    first = await learned(service, a_job, 1)
    await learned(service, a_job, 2)
    clock["day"] = 2
    daily = await learned(service, a_job, 3)
    await learned(service, a_job, 4)
    newest = await learned(service, a_job, 5)
    answer = await back(service, by="ada", reason="misses since the upgrade")
    assert (answer.from_version, answer.calibration.version, answer.set_aside) == (newest, daily, 2)
    note = r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC by ada: misses since the upgrade"
    assert re.fullmatch(f"promoted after {newest} {note}", answer.calibration.note)
    assert (answer.calibration.kind, answer.calibration.state) == ("daily", "active")
    answer = await back(service)
    assert (answer.from_version, answer.calibration.version, answer.set_aside) == (daily, first, 2)
    found = {each.version: each for each in await listed(service, chosen_only=True)}
    assert re.fullmatch(f"left for {daily} {note}", found[newest].note)
    assert [found[name].kind for name in (first, daily, newest)] == ["daily", "daily", "promoted"]
    assert len(found) == 3
    assert len(await listed(service)) == 5


async def test_without_such_a_version_a_rollback_goes_to_the_one_before(service: Any, a_job: AJob, database: Database) -> None:
    """As far as there is one."""
    names = [await learned(service, a_job, second) for second in (1, 2, 3)]
    database.run("UPDATE calibrations SET kind = ''")
    assert (await back(service)).calibration.version == names[1]
    assert (await back(service)).calibration.version == names[0]
    with pytest.raises(grpc.RpcError):
        await back(service)


async def test_one_who_promotes_the_active_version_changes_nothing(service: Any, a_job: AJob, database: Database) -> None:
    """Nor does one who names a version that is not there."""
    name = await learned(service, a_job, 1)
    rows = "SELECT version, state, kind, note FROM calibrations"
    want = database.rows(rows)
    answer = await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=name, by="ada"))
    assert (answer.from_version, answer.calibration.version, answer.set_aside) == (name, name, 0)
    with pytest.raises(grpc.RpcError) as caught:
        await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version="1.99"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert database.rows(rows) == want


async def test_an_alarm_is_kept_with_the_levels_that_moved(service: Any, a_job: AJob) -> None:
    """And the version that is asked for says how often each has, and whether it is settled."""
    for second, ratio in enumerate((*[1.0] * 20, *[1.12] * 8), 1):
        await learned(service, a_job, second, ratio)
    alarms = [each for each in await listed(service, chosen_only=True) if each.kind == "alarm"]
    assert len(alarms) == 1
    assert "needs rose" in alarms[0].note
    shown = (await service.calibration.GetCalibration(pb.GetCalibrationRequest())).calibration
    assert {level.level.split()[0] for level in shown.levels} == {"framework", "group"}
    assert {(level.alarms, level.alarmed) for level in shown.levels} == {(1, True)}
    assert {level.observations for level in shown.levels} == {28}
    assert shown.groups[0].observations == 28
    assert list(shown.distrust) == []


SEEDS = (1, 2)
STEPS = 60


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_margin_is_what_its_line_was_told(
    seed: int, service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    """To the last bit, after random ends in any order, rollbacks, promotions and deletions of versions: as if told from the first on."""
    monkeypatch.setattr(learning, "THIN_EVERY", 3)
    monkeypatch.setattr(history, "thinned", partial(thinning.thinned, newest_kept=4))
    draw = random.Random(seed)
    clock = {"day": 500}
    service.core.learner._clock = lambda: clock["day"] * DAY * MICROSECONDS
    service.core.learner._history_us = 9 * DAY * MICROSECONDS
    told: dict[str, frozenset[str]] = {}
    seconds = draw.sample(range(1, 10_000), STEPS)
    active = ""
    for step in range(STEPS):
        clock["day"] += draw.random() < 0.3
        if draw.random() < 0.7 or not active:
            before = told.get(active, frozenset())
            active = await learned(service, a_job, seconds[step], draw.choice((0.97, 1.0, 1.02, 1.1)))
            told[active] = before | {str(seconds[step])}
        elif draw.random() < 0.5:
            kept = draw.choice(await listed(service))
            active = (await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=kept.version))).calibration.version
        elif len(await listed(service)) > 1 and await can_go_back(service):
            active = (await back(service)).calibration.version
        await service.core.learner.learn()
        row = service.core.store.active_calibration()
        if row.version != active:  # what came too late for the versions at hand was taken in by the sweep
            told[row.version], active = told[active], row.version
        assert_is_what_was_told(service.core.store, row, database, told[active])
    assert len(await listed(service)) < STEPS / 2


async def can_go_back(service: Any) -> bool:
    """Whether there is a version before the active one."""
    store = service.core.store
    return store.earlier_calibration(store.active_sequence()) is not None


def assert_is_what_was_told(store: Any, row: Any, database: Database, jobs: frozenset[str]) -> None:
    """The stored margin equals one that was told these jobs from the first on, and one that is made again from the rows."""
    bodies = [str(body) for job, body in database.rows("SELECT job, body FROM observations") if job in jobs]
    assert len(bodies) == len(jobs)
    memory = memory_model()
    margin = Margin(Calibrator(epoch=memory.version))
    for observation in in_order(observation_from(body) for body in bodies):
        margin.learn(observation)
    assert margin.text() == row.body
    again = rebuilt(store, row.sequence, (), memory=memory)
    from_nothing = rebuilt(store, 0, (), memory=memory)
    assert again is not None
    assert from_nothing is not None
    assert again.margin.text() == from_nothing.margin.text() == row.body
