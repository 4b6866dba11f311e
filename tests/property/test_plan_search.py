"""The plan search: many plans at once are what the predictor says of each, and the search finds what trying everything finds."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.jobs import jobs
from tests.unit.memory.builders import a_job

from peakgate.memory.change import with_changes
from peakgate.memory.check import check
from peakgate.memory.job import Job
from peakgate.memory.model import describe
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.step_time import relative, sizes_of, step_time
from peakgate.memory.suggest.grid import changes_of, entry
from peakgate.memory.suggest.plans import plans_of
from peakgate.memory.suggest.search import SLOW as TOO_SLOW
from peakgate.memory.suggest.search import WORTH_A_LEVER, Found, found_at, search
from peakgate.memory.suggest.space import Evaluated, Space, plan_of, space_of
from peakgate.memory.suggest.wanted import Wanted

EVERYTHING = frozenset({"numerics", "objective"})
SLOW = settings(max_examples=settings().max_examples // 10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def space_for(job: Job, limit: int) -> Space:
    """The space of a job on a card that holds so many bytes, with every lever."""
    space = space_of(job, lambda _: limit, allow=EVERYTHING)
    assert space is not None
    return space


def plan(job: Job) -> Plan:
    """The job's plan."""
    return plan_of(job, describe(job.model))[0]


def assert_is_the_predictors(space: Space, evaluated: Evaluated, index: int) -> None:
    """One plan of many: bytes as predicted alone, and the step time of it alone."""
    numbers = changes_of(space.job, space.plan, entry(evaluated.numbers, index))
    job = with_changes(space.job, (*evaluated.words, *numbers))
    check(job)
    alone = predict(job)
    assert (evaluated.required[index], evaluated.host[index]) == (alone.required_bytes, alone.host_bytes), numbers
    placed = plan(job)
    assert evaluated.time[index] == pytest.approx(float(relative(space.before, step_time(placed, sizes_of(placed), space.card))), rel=1e-9)


@SLOW
@given(jobs(), st.data())
def test_many_plans_at_once_are_what_the_predictor_says_of_each(job: Job, data: st.DataObject) -> None:
    """Of random levers and every number that is legal beside them."""
    space = space_for(job, predict(job).required_bytes)
    places = (
        data.draw(st.lists(st.integers(0, max(0, len(space.options) - 1)), max_size=3, unique=True).map(sorted)) if space.options else []
    )
    levers = [space.options[place].lever for place in places]
    assume(len(set(levers)) == len(levers))
    evaluated = space.evaluate(tuple(places))
    assume(evaluated is not None)
    assert evaluated is not None
    for index in {0, len(evaluated.time) - 1, data.draw(st.integers(0, len(evaluated.time) - 1))}:
        assert_is_the_predictors(space, evaluated, index)


CLUSTER = [
    a_job(
        {
            "parallelism.world_size": world,
            "batch.micro_batch_size": 4,
            "batch.gradient_accumulation_steps": 8,
            "framework.name": name,
            "precision.recipe": recipe,
            **({"parallelism.sharding": sharding} if sharding else {}),
        }
    )
    for world, name, recipe, sharding in (
        (16, "megatron", "megatron-bf16", "zero1"),
        (16, "megatron", "megatron-bf16", ""),
        (16, "torchtitan", "fsdp-bf16", ""),
        (8, "deepspeed", "deepspeed-bf16", "zero1"),
        (8, "huggingface", "amp-bf16", ""),
        (8, "textbook", "deepspeed-bf16", ""),
    )
]


@pytest.mark.parametrize("job", CLUSTER, ids=lambda job: f"{job.framework.name}-{job.parallelism.sharding}")
def test_every_degree_of_a_cluster_is_what_the_predictor_says(job: Job) -> None:
    """Every plan of every lever alone and of pairs of degrees: all of them, one by one."""
    space = space_for(job, predict(job).required_bytes)
    degrees = [place for place, option in enumerate(space.options) if option.degree]
    nodes = [(), *((place,) for place in range(len(space.options))), *combinations(degrees, 2), tuple(degrees)]
    seen = 0
    for node in nodes:
        evaluated = space.evaluate(node)
        for index in range(0, len(evaluated.time) if evaluated is not None else 0, 3):
            assert evaluated is not None
            assert_is_the_predictors(space, evaluated, index)
            seen += 1
    assert seen >= len(space.options)


def tried(space: Space) -> list[Found]:
    """What fits, from trying every set of levers, without the ones that a part of them does as well; best first, one of a kind."""
    largest: dict[tuple[int, ...], int] = {}
    found: dict[tuple[int, ...], Found] = {}

    def parts(node: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [(*node[:at], *node[at + 1 :]) for at in range(len(node))]

    def does_as_well(part: tuple[int, ...], node: tuple[int, ...]) -> bool:
        return largest.get(part, 0) >= largest[node] and found[part].time <= found[node].time + WORTH_A_LEVER

    for size in range(len(space.options) + 1):
        for node in combinations(range(len(space.options)), size):
            levers = [space.options[place].lever for place in node]
            evaluated = space.evaluate(node) if len(set(levers)) == len(levers) else None
            index = evaluated.best() if evaluated is not None else None
            if evaluated is not None and index is not None:
                largest[node], found[node] = int(evaluated.numbers["micro_batch"][index]), found_at(space, evaluated, index)
    needed = {node: each for node, each in found.items() if not any(does_as_well(part, node) for part in parts(node))}
    kinds: dict[frozenset[str], Found] = {}
    for each in sorted(needed.values(), key=lambda one: one.rank):
        kinds.setdefault(each.kind, each)
    plans = list(kinds.values())
    best = [each for each in plans if not any(other.about < each.about and other.time <= each.time for other in plans)]
    return [each for each in best if each.time <= TOO_SLOW] or best[:1]


@SLOW
@given(jobs(), st.floats(0.55, 0.99), st.data())
def test_the_search_finds_what_trying_everything_finds(job: Job, share: float, data: st.DataObject) -> None:
    """On a few levers, drawn at random, and a card that holds a share of what the job needs."""
    whole = space_for(job, int(share * predict(job).required_bytes))
    assume(len(whole.options) > 1)
    chosen = data.draw(st.lists(st.integers(0, len(whole.options) - 1), min_size=1, max_size=4, unique=True).map(sorted))
    whole.options = [whole.options[place] for place in chosen]
    alone = [whole.evaluate((place,)) for place, option in enumerate(whole.options) if not option.free]
    assume(all(each is None or each.time.min() > 1 - WORTH_A_LEVER for each in alone))  # of tiny models what is dear may save launches
    want = tried(whole)[:3]
    fresh = space_for(job, int(share * predict(job).required_bytes))
    fresh.options = whole.options
    found = search(fresh, most=3, effort=100_000).found
    assert [(each.changes, each.rank) for each in found] == [(each.changes, each.rank) for each in want]


@SLOW
@given(jobs(), st.floats(0.6, 1.2))
def test_every_suggestion_is_legal_and_keeps_the_batch(job: Job, share: float) -> None:
    """It is judged as it was found, and micro-batch × accumulation × data degree stays what it was."""
    limit = int(share * predict(job).required_bytes)
    before = plan(job)
    for each in plans_of(job, lambda _: limit, Wanted()).suggestions:
        changed = with_changes(job, each.changes)
        after = plan(changed)
        assert predict(changed).required_bytes == each.required_bytes <= limit
        assert after.micro_batch * after.accumulation * after.degrees.data == before.micro_batch * before.accumulation * before.degrees.data
        assert each.relative_step_time > 0
        assert each.title
        assert each.why
