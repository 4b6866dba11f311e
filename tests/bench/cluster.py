"""`python -m tests.bench.cluster [SEED…]`: the calibration's acceptance criteria on simulated clusters.

Without seeds: 1000 to 1009, and ten that are drawn now. A miss on a drawn seed is printed with it; only the fixed ones decide.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.bench.bounds import bar
from tests.bench.cluster_bars import BARS, Measured, reliability
from tests.bench.cluster_costs import costs, observations_of, replays_differently
from tests.bench.cluster_trials import measure

SEEDS = range(1000, 1010)
FRESH = 10
RELIABILITY = bar("calibration_probability_error")
UPDATE_SECONDS = bar("calibration_update_seconds")
BOUND_SECONDS = bar("calibration_bound_seconds")
STATE_BYTES = bar("calibration_state_bytes")
Line = tuple[str, str, float, float, int]
"""Name, meaning, figure, limit, and the seed that it is of, or of a mean the one with the largest figure (0: all)."""


def measured(seeds: Sequence[int]) -> Measured:
    """Every setting of every seed, on all cores."""
    with ProcessPoolExecutor() as pool:
        return dict(zip(seeds, pool.map(measure, seeds), strict=True))


def lines(found: Measured) -> Iterator[Line]:
    """Every bar that the figures of these seeds decide."""
    for each in (each for each in BARS if len(found) >= each.fewest_seeds):
        figure, seed = each.worst(found)
        yield f"{each.name} {'each' if each.each else 'mean'}", each.meaning, figure, each.limit, seed
    distance, edge = reliability(found)
    yield "A10 all", f"predicted against observed out-of-memory, worst bin (from {edge:g})", distance, RELIABILITY, 0


def cost_lines(seed: int) -> Iterator[Line]:
    """A11 and A12."""
    observations = observations_of(seed)
    yield "A11 each", "replays that differ in a bit", float(replays_differently(observations, seed)), 0.0, seed
    found = costs(observations)
    yield "A12", "ms of CPU of an update, mean", found.update_mean * 1e3, UPDATE_SECONDS * 1e3, seed
    yield "A12", "ms of CPU of an update, 99th percentile", found.update_p99 * 1e3, UPDATE_SECONDS * 1e3, seed
    yield "A12", "µs of CPU of a bound", found.bound * 1e6, BOUND_SECONDS * 1e6, seed
    yield "A12", "MB of state, 1000 groups", found.state_bytes / 1e6, STATE_BYTES / 1e6, seed


def show(rows: Iterator[Line]) -> bool:
    """Prints the lines; whether all hold."""
    holds = True
    for name, meaning, figure, limit, seed in rows:
        holds = holds and figure <= limit
        verdict = ("holds" if figure <= limit else "BROKEN") + (f", worst at seed {seed}" if seed else "")
        print(f"{name:9} {meaning:95} {figure:9.4f}  limit {limit:8.4f}  {verdict}", flush=True)
    return holds


def main(arguments: Sequence[str]) -> bool:
    """Prints every bar; whether those of the fixed seeds hold."""
    seeds = [int(argument) for argument in arguments] or list(SEEDS)
    print(f"seeds {' '.join(map(str, seeds))}")
    holds = show(lines(measured(seeds)))
    holds = show(cost_lines(seeds[0])) and holds
    if not arguments:
        fresh = [random.SystemRandom().randrange(10_000, 1 << 31) for _ in range(FRESH)]
        print(f"fresh seeds {' '.join(map(str, fresh))}")
        show(lines(measured(fresh)))
    return holds


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
