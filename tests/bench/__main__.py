"""`python -m tests.bench [PART…]`: what a prediction costs, how fast the command starts, how near the figures come, what is suggested,
how fast peaks are stored, whether the calibration keeps its promises.

Without a part: all of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import ingest as ingesting
from tests.bench import sustained as sustaining
from tests.bench.accuracy import TRACED_HEADER, answered_rows, published_report, traced_figures, traced_line, traced_sets
from tests.bench.bounds import BOUNDS
from tests.bench.cluster import main as simulated_clusters
from tests.bench.coldstart import cold_start_seconds
from tests.bench.helping import helper_step_seconds
from tests.bench.load import Options
from tests.bench.measured import main as measured_networks
from tests.bench.overhead import measure_overhead, report
from tests.bench.programs import ROOT
from tests.bench.reading import slowest_cases
from tests.bench.sampling import measured as sampled
from tests.bench.simulating import ATTEMPTS, simulation_seconds
from tests.bench.slurm import main as slurm_hook
from tests.bench.suggesting import measured as suggested
from tests.bench.suggestions import Top, out_of_memory, top
from tests.bench.suggestions import report as suggestions_report
from tests.bench.walking import measured
from tests.bench.webhook import main as webhook


def overhead() -> bool:
    """Prints the cost of a call of a job seen before (warm) and of one never seen (fresh); whether the bars hold."""
    bars = {kind: float(BOUNDS[f"{kind}_predict_ratio"]["bar"]) for kind in ("warm", "fresh")}
    with tempfile.TemporaryDirectory() as folder:
        found = measure_overhead(Path(folder), rounds=5, calls=4000, fresh_calls=400)
    print(report(found, bars))
    return all(found.ratio(kind) <= bar for kind, bar in bars.items())


def coldstart() -> bool:
    """Prints the cold start; whether the bar holds."""
    bar: float = BOUNDS["cold_start_seconds"]["bar"]
    job = next(iter(sorted((ROOT / "examples").glob("*.yaml"))))
    best = cold_start_seconds(job)
    verdict = "holds" if best <= bar else "BROKEN"
    print(f"cold start of `peakgate predict {job.relative_to(ROOT)}`: {best:.2f} s, best of three (bar {bar} s: {verdict})")
    return best <= bar


def walking() -> bool:
    """Prints what `memory.predict` alone costs; whether the bars hold."""
    holds = True
    for name, seconds in measured().items():
        bar = float(BOUNDS[name]["bar"])
        holds = holds and seconds <= bar
        print(f"{name}: {seconds * 1e3:.3f} ms of CPU (bar {bar * 1e3:g} ms: {'holds' if seconds <= bar else 'BROKEN'})")
    return holds


def suggesting() -> bool:
    """Prints what the plan search costs; whether the bars hold."""
    holds = True
    for name, found in suggested().items():
        bar = float(BOUNDS[name]["bar"])
        holds = holds and found <= bar
        unit, times = ("MiB", 1) if name.endswith("_mib") else ("ms of CPU", 1e3)
        print(f"{name}: {found * times:.1f} {unit} (bar {bar * times:g}: {'holds' if found <= bar else 'BROKEN'})")
    return holds


def accuracy() -> bool:
    """Prints the error tables; whether every job was judged (UNDECIDED is a judgement)."""
    published = answered_rows("published_jobs")
    traced = {path.stem: answered_rows(path.stem) for path in traced_sets()}
    print(published_report(published) + "\n\n" + TRACED_HEADER)
    for name, pairs in traced.items():
        print(traced_line(name, traced_figures(pairs)))
    errors = [answer["error"] for pairs in (published, *traced.values()) for _, answer in pairs if "error" in answer]
    print(f"errors in place of an answer: {len(errors)}", *errors[:5], sep="\n")
    return not errors


def suggestions() -> bool:
    """Prints what is suggested for jobs that ran out of memory; whether no first suggestion turns out not to fit."""
    print(suggestions_report())
    return not any(top(row) is Top.FAILS for row in out_of_memory())


def reading() -> bool:
    """Prints what reading a launch costs, by format; whether the bar holds."""
    bar, holds = float(BOUNDS["reading_seconds"]["bar"]), True
    for name, case, seconds in slowest_cases():
        holds = holds and seconds <= bar
        print(f"{name}: {case} {seconds * 1e3:.1f} ms of CPU (bar {bar * 1e3:g} ms: {'holds' if seconds <= bar else 'BROKEN'})")
    return holds


def helping() -> bool:
    """Prints what a step costs in the helper of a training; whether the bar holds."""
    bar, seconds = float(BOUNDS["helper_step_seconds"]["bar"]), helper_step_seconds()
    verdict = "holds" if seconds <= bar else "BROKEN"
    print(f"a step with three phases: {seconds * 1e6:.1f} µs of CPU (bar {bar * 1e6:g} µs: {verdict})")
    return seconds <= bar


def sampling() -> bool:
    """Prints what watching a node costs, and how its memory stands after a day; whether the bars hold."""
    holds = True
    for name, found in sampled().items():
        bar = float(BOUNDS[name]["bar"])
        holds = holds and found <= bar
        shown = f"{found:.3%} of a core" if name.endswith("_ratio") else f"{found:.1f} MiB"
        limit = f"{bar:.3%}" if name.endswith("_ratio") else f"{bar:g} MiB"
        print(f"{name}: {shown} (bar {limit}: {'holds' if found <= bar else 'BROKEN'})")
    return holds


def ingest() -> bool:
    """Prints what the store keeps of the driver's own speed; whether the bars hold."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {"sqlite": ("executemany", ingesting.sqlite(Path(folder), rows=20_000, rounds=5))}
    sides["postgresql"] = ("COPY", ingesting.postgresql(rows=20_000, rounds=5))
    bars = {kind: float(BOUNDS[f"{kind}_ingest_ratio"]["bar"]) for kind in sides}
    for kind, (raw_name, found) in sides.items():
        print(ingesting.line(kind, raw_name, found, bars[kind]))
    return all(found.ratio >= bars[kind] for kind, (_, found) in sides.items())


def sustained() -> bool:
    """Prints what becomes of two minutes of 10,000 nodes, on each kind of database; whether nothing is lost and Predict stays quick."""
    bar, holds = float(BOUNDS["sustained_predict_p99_seconds"]["bar"]), True
    for kind in sustaining.KINDS:
        with tempfile.TemporaryDirectory() as folder, sustaining.database(kind, Path(folder)) as store:
            found = sustaining.measure(store, Path(folder), Options(nodes=10_000, seconds=120.0))
        kept = not found.lost_keys and not found.refused_rows
        quick = found.predict_p99_seconds <= bar
        print(sustaining.line(found))
        print(f"  nothing lost: {'holds' if kept else 'BROKEN'}; Predict p99 (bar {bar * 1e3:g} ms): {'holds' if quick else 'BROKEN'}")
        holds = holds and kept and quick
    return holds


def calibration() -> bool:
    """Prints the calibration's bars on simulated clusters and on measured networks; whether they hold."""
    clusters = simulated_clusters([])
    print()
    return measured_networks() and clusters


def simulating() -> bool:
    """Prints what the replay of a history costs; whether the bar holds."""
    bar, seconds = float(BOUNDS["simulation_seconds"]["bar"]), simulation_seconds()
    verdict = "holds" if seconds <= bar else "BROKEN"
    print(f"a history of {ATTEMPTS} attempts under the usual policies: {seconds:.1f} s of CPU (bar {bar:g} s: {verdict})")
    return seconds <= bar


PARTS: dict[str, Callable[[], bool]] = {
    "overhead": overhead,
    "coldstart": coldstart,
    "walking": walking,
    "accuracy": accuracy,
    "suggestions": suggestions,
    "suggesting": suggesting,
    "reading": reading,
    "helping": helping,
    "sampling": sampling,
    "ingest": ingest,
    "sustained": sustained,
    "calibration": calibration,
    "simulating": simulating,
    "slurm": slurm_hook,
    "webhook": webhook,
}


def main() -> int:
    """Runs the parts that were named; 1 when a bar is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}")
    names = parser.parse_args().parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    broken = []
    for name in names:
        print(f"== {name}", flush=True)
        if not PARTS[name]():
            broken.append(name)
        print(flush=True)
    if broken:
        print(f"broken: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
