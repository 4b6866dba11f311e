"""Who judges: the service, the one beside the hook, or nobody; against real gRPC servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
import pytest
from tests.unit.hooks.slurm.building import Answering, a_job, a_suggestion, an_answer, rejected, serving

from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import BESIDE, SERVICE, Judgement, Judges, Service
from peakgate.hooks.breaker import Breaker
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse, PredictRequest


@asynccontextmanager
async def judges(service: Answering | None, beside: Answering | None = None, **more: object) -> AsyncIterator[Judges]:
    """Judges over real servers; a service of None is one that nobody runs."""
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(serving(service)) if service is not None else "127.0.0.1:1"
        there = Service(target)
        stack.push_async_callback(there.channel.close)
        here = None
        if beside is not None:
            here = Service(await stack.enter_async_context(serving(beside)))
            stack.push_async_callback(here.channel.close)
        yield Judges(service=there, beside=lambda: here, **{"deadline_seconds": 5.0, **more})  # type: ignore[arg-type]


async def ask(found: Judges, **more: object) -> Judgement:
    """A verdict on a job."""
    told: dict[str, object] = {"user": "c/1001", "try_reason": "", "may_judge_here": True, **more}
    return await found.predict(a_job(), **told)  # type: ignore[arg-type]


async def test_the_service_judges_briefly_and_once() -> None:
    """A search for suggestions may take longer than a controller waits; equal jobs of a user are answered from what is kept."""
    answering = Answering()
    async with judges(answering) as found:
        first, second = await ask(found), await ask(found)
        await ask(found, user="c/1002")
    assert (first.by, second.by, first.answer == second.answer) == (SERVICE, SERVICE, True)
    assert [request.brief for request in answering.asked] == [True, True]
    assert answering.asked[0].request_id


async def test_a_try_is_never_answered_from_what_is_kept() -> None:
    """It is the user's own, and counted by the service."""
    answering = Answering()
    async with judges(answering) as found:
        await ask(found)
        await ask(found, try_reason="deadline")
        await ask(found, try_reason="deadline")
    assert len(answering.asked) == 3


async def test_without_the_service_the_one_beside_judges() -> None:
    """Its answer has no name, for nothing is kept of it, and it is not kept here either."""
    beside = Answering(answer=lambda request: an_answer(prediction="predictions/none"))
    async with judges(None, beside) as found:
        first, second = await ask(found), await ask(found)
        nobody = await ask(found, may_judge_here=False)
    assert first.answer is not None
    assert (first.by, first.answer.prediction, second.by, len(beside.asked)) == (BESIDE, "", BESIDE, 2)
    assert (nobody.answer, nobody.is_away) == (None, True)


async def test_a_service_that_hangs_costs_its_deadline_and_no_more() -> None:
    """The one beside begins meanwhile, so that its answer is there then."""
    service, beside = Answering(seconds=60), Answering()
    async with judges(service, beside, deadline_seconds=0.3) as found:
        warm = found.beside()
        assert warm is not None
        await warm.predict(PredictRequest(job=a_job()), 5)
        began = time.perf_counter()
        judgement = await ask(found)
        took = time.perf_counter() - began
    assert judgement.by == BESIDE
    assert 0.25 <= took <= 1.0


async def test_a_service_that_fails_is_left_alone_for_a_while() -> None:
    """After three failures it is not asked; each is counted by its code."""
    service, codes = Answering(code=grpc.StatusCode.UNAVAILABLE), list[str]()
    async with judges(service, Answering(), breaker=Breaker(failures=3, seconds=60), on_away=codes.append) as found:
        by = [(await ask(found)).by for _ in range(5)]
    assert by == [BESIDE] * 5
    assert (len(service.asked), codes, found.breaker.is_open) == (3, ["UNAVAILABLE"] * 3, True)


async def test_a_job_that_makes_no_sense_is_the_services_word() -> None:
    """The one beside would say the same; the breaker does not count it."""
    service, beside = Answering(code=grpc.StatusCode.INVALID_ARGUMENT), Answering()
    async with judges(service, beside) as found:
        judgement = [await ask(found) for _ in range(4)][-1]
    assert (judgement.answer, judgement.is_away, judgement.problem) == (None, False, "as told")
    assert (len(service.asked), len(beside.asked), found.breaker.is_open) == (4, 0, False)


async def test_a_stored_prediction_is_looked_up() -> None:
    """One that is not known, or a service that is away, is None."""
    stored = {"predictions/a": GetPredictionResponse(job=a_job(), prediction=an_answer())}
    async with judges(Answering(stored=stored)) as found:
        known, unknown = await found.stored("predictions/a"), await found.stored("predictions/b")
        assert not found.breaker.is_open
    async with judges(None) as found:
        away = await found.stored("predictions/a")
    assert known is not None
    assert (known.job, unknown, away) == (a_job(), None, None)


def advice(request: PredictRequest) -> PredictResponse:
    """A rejection, with a change when it is looked for."""
    answer = rejected()
    if not request.brief:
        answer.suggestions.append(a_suggestion())
    return answer


async def test_advice_is_looked_for_beside_the_verdict_and_stored_nowhere() -> None:
    """In time it is told; a second time it is not looked for."""
    service = Answering(answer=advice)
    async with judges(service) as found:
        advisers = Advisers(judges=found, wait_seconds=5)
        for _ in range(2):
            advised = await advisers.advised(await ask(found), a_job())
            assert advised.answer is not None
            assert ([each.fits for each in advised.answer.suggestions], advised.is_brief) == ([True], False)
    assert [(request.brief, request.validate_only) for request in service.asked] == [(True, False), (False, True)]


async def test_advice_that_comes_late_is_told_the_next_time() -> None:
    """The search outlives the submission that began it."""
    service = Answering(answer=advice, seconds=0.2)
    async with judges(service) as found:
        advisers = Advisers(judges=found, wait_seconds=0.01)
        judgement = await ask(found)
        early = await advisers.advised(judgement, a_job())
        await asyncio.sleep(0.5)
        late = await advisers.advised(judgement, a_job())
        await advisers.close()
    assert (early.is_brief, late.is_brief) == (True, False)


@pytest.mark.parametrize("answer", [an_answer(), an_answer("UNDECIDED")])
async def test_only_a_rejected_job_needs_advice(answer: PredictResponse) -> None:
    """Nothing is asked for others."""
    service = Answering(answer=lambda request: answer)
    async with judges(service) as found:
        await Advisers(judges=found).advised(await ask(found), a_job())
    assert len(service.asked) == 1


async def test_the_service_beside_searches_only_where_there_is_no_other() -> None:
    """All verdicts rest on it while the real one is away."""
    beside = Answering(answer=advice)
    async with judges(None, beside) as found:
        away = await Advisers(judges=found, wait_seconds=5).advised(await ask(found), a_job())
        alone = Judges(service=None, beside=found.beside, deadline_seconds=5.0)
        advised = await Advisers(judges=alone, wait_seconds=5).advised(await ask(alone), a_job())
    assert (away.is_brief, advised.is_brief) == (True, False)
