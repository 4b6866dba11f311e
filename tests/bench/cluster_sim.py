"""A simulated cluster: jobs whose true needs differ from their predictions in the ways that real ones do. Sizes in GB.

Thirty groups (five GPU models × three frameworks × one node or several) of unequal popularity, four of which appear only after 60 % of
the stream; 40 users with leanings of their own; one framework whose upgrade silently needs more from half-way on, another that needs
less from three quarters on. Reports are as bad as in life: 4 % run out of memory for other reasons, 2.5 % die early and say so, 2.5 % die
early in silence, 1 % report nonsense. Only admitted jobs report, and 5 % that were tried anyway; reports come late.

The truth is not the calibration's prior. All draws come from one numpy Generator a seed, parameters first, then jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

GPUS = {"v100-32": (32.0, 0.35), "rtx4090-24": (24.0, 0.40), "a100-80": (80.0, 0.45), "h100-80": (80.0, 0.55), "h200-141": (141.0, 0.60)}
"""Card and the prior of its context."""
NAMES = tuple(GPUS)
FRAMEWORKS = ("ddp", "fsdp", "zero3")
COMMUNICATORS = (0.8, 1.8)
"""Prior of the communicators on one node and on several."""
FRAMEWORK_PRIOR = 0.5
SLOPES_PRIOR = (0.06, 0.02)
USERS = 40
UPGRADED, SLIMMED = 1, 2
"""Frameworks that drift up and down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an agent stores of a job: the need, or a lower bound of it; `told`: from the allocator's own statistics."""

    value: float
    exact: bool
    told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """One submission. `need` is the truth; `kind` what is wrong with its report; the u are draws of the report."""

    number: int
    group: int
    gpu: int
    framework: int
    nodes: int
    card: float
    predicted: float
    activations: float
    states: float
    user: int
    need: float
    kind: str
    u_value: float
    u_form: float
    override: bool
    delay: int
    version: int
    attacker: bool = False

    @property
    def prior(self) -> float:
        """The table's residual, which is deliberately not the truth."""
        slopes = SLOPES_PRIOR[0] * self.activations + SLOPES_PRIOR[1] * self.states
        return GPUS[NAMES[self.gpu]][1] + COMMUNICATORS[self.nodes] + FRAMEWORK_PRIOR + slopes


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How a cluster departs from the base one."""

    jobs: int = 6000
    drift: bool = True
    poison: float = 0.01
    shape: str = "base"
    """base, heteroscedastic (noise grows with the states), nonlinear (a saturating slope, an unseen factor), heavy-tail, small-cards."""


BASE = World()
SHAPES = ("heteroscedastic", "nonlinear", "heavy-tail", "small-cards")


def cluster(seed: int, world: World = BASE) -> list[SimulatedJob]:
    """The submissions of one cluster, in their order."""
    draw = np.random.default_rng(seed)
    groups = [(gpu, framework, nodes) for gpu in range(5) for framework in range(3) for nodes in range(2)]
    count = len(groups)
    context = np.array([GPUS[name][1] for name in NAMES]) * draw.uniform(0.8, 1.7, 5)
    communicators = np.array([draw.uniform(0.5, 1.1), draw.uniform(1.2, 2.4)])
    constants = np.array([0.3, 0.5, 0.8]) * draw.uniform(0.6, 1.5, 3)
    slopes = np.array([0.03, 0.055, 0.08]) * draw.uniform(0.7, 1.4, 3)
    state_slopes = np.array([0.03, 0.01, 0.02]) * draw.uniform(0.3, 1.6, 3)
    constant = np.array([context[g] + communicators[n] + constants[f] for g, f, n in groups]) + draw.normal(0, 0.25, count)
    constant = np.maximum(constant, 0.3)
    slope = np.maximum(np.array([slopes[f] for _, f, _ in groups]) + draw.normal(0, 0.015, count), 0)
    state_slope = np.maximum(np.array([state_slopes[f] for _, f, _ in groups]) + draw.normal(0, 0.005, count), 0)
    noise = np.exp(draw.uniform(math.log(0.008), math.log(0.03), count))
    late = draw.choice(count, 4, replace=False)
    popularity = 1 / (1 + draw.permutation(count)) ** 0.7
    leaning = draw.normal(0, 0.015, USERS)
    jobs = []
    for number in range(world.jobs):
        weights = popularity.copy()
        weights[late] = 0 if number < 0.6 * world.jobs else weights.mean()
        group = int(draw.choice(count, p=weights / weights.sum()))
        gpu, framework, nodes = groups[group]
        card = GPUS[NAMES[gpu]][0]
        if world.shape == "small-cards":
            card = min(card, 32.0)
        u = draw.random()
        ratio = draw.uniform(0.1, 0.6) if u < 0.35 else (draw.normal(0.82, 0.12) if u < 0.85 else draw.uniform(0.9, 1.3))
        predicted = max(0.05, ratio) * card
        activations = predicted * draw.beta(2, 2)
        states = predicted - activations
        user = int(draw.integers(USERS))
        one, of_activations = constant[group], slope[group]
        upgraded = world.drift and framework == UPGRADED and number >= 0.5 * world.jobs
        if upgraded:
            one, of_activations = one + 1.2, of_activations + 0.05
        if world.drift and framework == SLIMMED and number >= 0.75 * world.jobs:
            one, of_activations = max(0.3, one - 0.6), max(0.0, of_activations - 0.03)
        residual = one + of_activations * activations**0.97 + state_slope[group] * states + leaning[user] * activations
        residual += noise[group] * activations * draw.normal() + 0.1 * draw.normal()
        if draw.random() < 0.03:  # fragmentation
            residual += activations * min(0.05 * (draw.pareto(2.5) + 1), 0.6)
        residual += _shaped(world.shape, draw, activations, states)
        need = predicted + max(residual, -0.1 * predicted)
        u, u_value, u_form, override = draw.random(), draw.random(), draw.random(), draw.random() < 0.05
        jobs.append(
            SimulatedJob(
                number=number,
                group=group,
                gpu=gpu,
                framework=framework,
                nodes=nodes,
                card=card,
                predicted=predicted,
                activations=activations,
                states=states,
                user=user,
                need=float(need),
                kind=_kind(u, world.poison),
                u_value=u_value,
                u_form=u_form,
                override=bool(override),
                delay=int(draw.geometric(1 / 30.0)),
                version=int(upgraded),
            )
        )
    return jobs


def _shaped(shape: str, draw: np.random.Generator, activations: float, states: float) -> float:
    """What a misspecified world adds to the residual."""
    if shape == "heteroscedastic":
        return float(0.02 * (activations + states) * draw.normal() * draw.random())
    if shape == "nonlinear":
        return float(0.9 * math.sqrt(activations) * 0.3 + 0.35 * draw.integers(0, 4))
    if shape == "heavy-tail":
        return float(activations * min(0.04 * (draw.pareto(2.0) + 1), 0.6)) if draw.random() < 0.06 else 0.0
    if shape == "small-cards":
        return 0.8
    return 0.0


def _kind(u: float, poison: float) -> str:
    for kind, share in (("oom_other", 0.04), ("early_flagged", 0.025), ("early_silent", 0.025), ("poison", poison)):
        if u < share:
            return kind
        u -= share
    return "ok"


def report(job: SimulatedJob) -> Report:
    """What the agent stores of a job that ran."""
    if job.kind == "poison":
        return Report(value=_poison(job), exact=True)
    if job.kind == "oom_other":
        return Report(value=min(job.need, job.card) * (0.5 + 0.5 * job.u_value), exact=False)
    if job.kind == "early_flagged":
        return Report(value=min(job.need, job.card) * (0.3 + 0.6 * job.u_value), exact=False)
    if job.kind == "early_silent" and job.need <= job.card:
        return Report(value=job.need * (0.3 + 0.6 * job.u_value), exact=True)
    if job.need > job.card:  # the allocation that failed would have passed the card
        return Report(value=job.card * (0.93 + 0.07 * job.u_value), exact=False)
    return Report(value=job.need, exact=True)


def _poison(job: SimulatedJob) -> float:
    if job.u_form < 1 / 3:
        return job.card * 0.999  # another process
    if job.u_form < 2 / 3:
        return job.need * 0.2 * job.u_value
    return job.need * (1.0486 if job.u_value < 0.5 else 1 / 1.0486)  # MB for MiB


Reporter = Callable[[SimulatedJob], Report]


def attacked(jobs: list[SimulatedJob], seed: int, *, factor: float, share: float = 0.1) -> list[SimulatedJob]:
    """The same cluster where one user submits this share of all jobs and needs `factor` times what is predicted."""
    draw = np.random.default_rng(5 + seed)
    return [_attacker(job, factor) if draw.random() < share else replace(job, user=job.user or 1) for job in jobs]


def _attacker(job: SimulatedJob, factor: float) -> SimulatedJob:
    return replace(job, user=0, attacker=True, need=job.predicted * factor)


def greedy(share_with_statistics: float) -> Reporter:
    """Agents of a cluster where a fifth of the jobs reserve up to 15 % more than they need, and some tell what is allocated."""

    def reporter(job: SimulatedJob) -> Report:
        seen = report(job)
        reserves_more = job.number * 7919 % 100 < 20
        tells = job.number * 104729 % 100 < share_with_statistics * 100
        if seen.exact and job.kind == "ok" and reserves_more and not tells:
            return Report(value=min(job.card * 0.995, seen.value * (1 + 0.15 * job.u_value)), exact=True)
        return replace(seen, told=tells and job.kind != "poison")

    return reporter
