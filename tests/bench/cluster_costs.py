"""What the calibration costs with a thousand groups: CPU seconds of an update and of a bound, bytes of the state; and its replay."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.bench.cluster_methods import Learned
from tests.bench.cluster_play import play
from tests.bench.cluster_sim import cluster

from peakgate.calibration import Calibrator, Observation, Snapshot, replay
from peakgate.calibration.versions import NAMES

GROUPS = 1000
UPDATES = 3000
ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU seconds, but for the size. An update ends with the snapshot that the next prediction reads."""

    update_mean: float
    update_p99: float
    bound: float
    state_bytes: int


def observations_of(seed: int) -> list[Observation]:
    """What the calibration was fed in one base cluster."""
    method = Learned(alpha=0.01, careful=None)
    play(cluster(seed), method)
    return method.observations


def costs(observations: Sequence[Observation]) -> Costs:
    """Of rows of a thousand groups and of 84 versions in turn, a tenth of versions of their own.

    Each update is the fastest of its rounds, so that other programs do not count.
    """
    rows = [_in_many_groups(observations[index % len(observations)], index) for index in range(UPDATES)]
    calibrator, rounds = Calibrator(), list[list[float]]()
    for _ in range(ROUNDS):
        calibrator = Calibrator()
        rounds.append([_update(calibrator, row) for row in rows])
    spent = sorted(min(times) for times in zip(*rounds, strict=True))
    return Costs(
        update_mean=sum(spent) / UPDATES,
        update_p99=spent[UPDATES * 99 // 100],
        bound=_bound(calibrator.snapshot(), rows),
        state_bytes=len(json.dumps(_with_every_version(calibrator.state()), separators=(",", ":"))),
    )


def _with_every_version(state: Mapping[str, Any]) -> Mapping[str, object]:
    """The state, had every level met as many versions as are known at once, all with numbers of three digits."""
    numbers = list(range(1000 - NAMES, 1000))
    return {**state, "nodes": {level: [*values[:-1], numbers] for level, values in state["nodes"].items()}}


def _update(calibrator: Calibrator, row: Observation) -> float:
    before = time.process_time()
    calibrator.learn(row)
    calibrator.snapshot()
    return time.process_time() - before


def _bound(snapshot: Snapshot, rows: Sequence[Observation]) -> float:
    before = time.process_time()
    for row in rows:
        snapshot.bound(row.subject, coverage=0.95)
    return (time.process_time() - before) / len(rows)


def _in_many_groups(row: Observation, index: int) -> Observation:
    version = f"torch 2.9.dev{index}" if index % 10 == 0 else f"torch 2.{index % 12} cuda 12.{index % 7}"
    subject = replace(row.subject, group=f"h100-80/huggingface/fsdp/multi/{index % GROUPS}", version=version)
    return replace(row, prediction=f"predictions/{index:032x}", config=f"{index // 2:016x}", subject=subject, finished_at=float(index))


def replays_differently(observations: Sequence[Observation], seed: int) -> bool:
    """A11: whether a rebuild from shuffled and repeated rows differs in any bit from the calibrator that was fed as they came."""
    online = Calibrator()
    for observation in observations:
        online.learn(observation)
    draw = random.Random(seed)
    shuffled = draw.sample([*observations, *observations[::7]], len(observations) + len(observations[::7]))
    rebuilt = replay(shuffled)
    restarted = Calibrator.from_state(json.loads(json.dumps(online.state())))
    return not online.state() == rebuilt.state() == restarted.state() or not online.snapshot() == rebuilt.snapshot() == restarted.snapshot()
