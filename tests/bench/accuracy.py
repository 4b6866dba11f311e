"""How near predictions come to published measurements and to traced models (tests/golden/README.md says where the rows come from).

Errors are |ln(predicted / measured)| of rows whose document states all that matters (quality high). A one-sided row says only that
the peak is at least about the measured one, so it counts only when the prediction is clearly below. Verdicts hold required_bytes
against the card that the source states, on rows of quality high and medium measured in steady state.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.programs import PEAKGATE, ROOT, environment

GOLDEN = ROOT / "tests/golden"
TIMEOUT_SECONDS = 600.0
STATES = frozenset({"parameters", "gradients", "master_weights", "optimizer_states"})
PEAK_OF_METRIC = {"allocated": "allocated_bytes", "reserved": "reserved_bytes", "nvidia_smi": "device_bytes"}
ONE_SIDED_RATIO = 0.97
# An unnamed metric is held against [allocated, device]; no framework keeps more than this above what it allocates.
LOOSE_RATIO, LOOSE_BYTES = 1.3, 3 * 2**30

Json = Mapping[str, object]


def at(document: object, path: str) -> object:
    """The value at a dotted path, or None."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def number(document: object, path: str) -> float:
    """The number at a path; 0.0 when there is none."""
    value = at(document, path)
    return float(value) if isinstance(value, int | float) else 0.0


def ask(jobs: Sequence[object]) -> list[Json]:
    """One answer a job, in order, from `peakgate predict -`; an error object stands in a bad job's place."""
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    command = [str(PEAKGATE), "predict", "-", "--output", "jsonl"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), input=text, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    if len(answers) != len(jobs):
        raise RuntimeError(f"{len(jobs)} jobs, {len(answers)} answers, exit status {done.returncode}:\n{done.stderr[-2000:]}")
    return answers


def rows(name: str) -> list[Json]:
    """The rows of a golden file."""
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()]


def is_answered(answer: Json) -> bool:
    """The job was judged and its peak computed (UNDECIDED counts)."""
    return at(answer, "error") is None and number(answer, "peak.allocated_bytes") > 0


def predicted_bytes(answer: Json, metric: str, measured: float) -> float:
    """What to hold against a measurement of this metric."""
    if metric in PEAK_OF_METRIC:
        return number(answer, f"peak.{PEAK_OF_METRIC[metric]}")
    low, high = number(answer, "peak.allocated_bytes"), number(answer, "peak.device_bytes")
    return min(max(measured, low), max(low, min(high, low * LOOSE_RATIO + LOOSE_BYTES)))


def ratios_of(row: Json, answer: Json) -> list[float]:
    """predicted / measured of each measurement of a row that counts."""
    if at(row, "outcome.kind") != "measured" or at(row, "quality") != "high" or not is_answered(answer):
        return []
    also = at(row, "outcome.also")
    peaks = {str(at(row, "outcome.metric")): number(row, "outcome.peak_bytes")} | (dict(also) if isinstance(also, Mapping) else {})
    ratios = [predicted_bytes(answer, metric, peak) / peak for metric, peak in peaks.items()]
    return [ratio for ratio in ratios if ratio > 0 and (not at(row, "one_sided") or ratio < ONE_SIDED_RATIO)]


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    hits: int
    total: int

    def __str__(self) -> str:
        return f"{self.hits}/{self.total}"

    @property
    def ratio(self) -> float:
        """hits over total; NaN of nothing."""
        return self.hits / self.total if self.total else math.nan


def share(flags: Iterable[bool]) -> Share:
    """Counts the true ones."""
    listed = list(flags)
    return Share(sum(listed), len(listed))


@dataclass(frozen=True)
class Figures:
    """What one set of published rows says."""

    answered: Share
    counted: int
    median: float
    p90: float
    out_of_memory_caught: Share  # jobs whose states alone exceed the card are left out: any calculator catches them
    false_rejects: Share


def nearest_rank(ordered: Sequence[float], quantile: float) -> float:
    """The quantile of sorted values; NaN of none."""
    return ordered[math.ceil(quantile * len(ordered)) - 1] if ordered else math.nan


def exceeds(answer: Json, capacity_bytes: float) -> bool:
    """The job needs more than the card has."""
    return is_answered(answer) and number(answer, "peak.required_bytes") > capacity_bytes > 0


def states_exceed(answer: Json, capacity_bytes: float) -> bool:
    """The model states alone are larger than the card."""
    ledger = at(answer, "ledger")
    lines = ledger if isinstance(ledger, list) else []
    return sum(number(line, "bytes") for line in lines if at(line, "category") in STATES) > capacity_bytes > 0


def ran(row: Json) -> bool:
    """The job is known to have run on its card."""
    measured = 0 < number(row, "outcome.peak_bytes") < number(row, "outcome.capacity_bytes")
    return at(row, "outcome.kind") == "fits" or (at(row, "outcome.kind") == "measured" and measured and not at(row, "one_sided"))


def figures_of(pairs: Sequence[tuple[Json, Json]]) -> Figures:
    """The figures of (row, answer) pairs."""
    errors = sorted(abs(math.log(ratio)) for row, answer in pairs for ratio in ratios_of(row, answer))
    trusted = [
        (row, answer, number(row, "outcome.capacity_bytes"))
        for row, answer in pairs
        if at(row, "quality") != "low" and at(row, "phase") == "steady"
    ]
    caught = share(
        exceeds(a, card) for row, a, card in trusted if at(row, "outcome.kind") == "oom" and not (is_answered(a) and states_exceed(a, card))
    )
    rejected = share(exceeds(a, card) for row, a, card in trusted if ran(row) and is_answered(a))
    answered = share(is_answered(answer) for _, answer in pairs)
    return Figures(answered, len(errors), median(errors) if errors else math.nan, nearest_rank(errors, 0.9), caught, rejected)


def published_report(pairs: Sequence[tuple[Json, Json]]) -> str:
    """The table of published jobs by framework."""
    frameworks = sorted({str(at(row, "job.framework.name")) for row, _ in pairs})
    lines = [f"{'published jobs':16}{'answered':>10}{'counted':>9}{'median':>9}{'p90':>9}{'OOM caught':>12}{'false rejects':>15}"]
    for name in ["all", *frameworks]:
        f = figures_of([pair for pair in pairs if name in {"all", at(pair[0], "job.framework.name")}])
        lines.append(
            f"{name:16}{f.answered!s:>10}{f.counted:9}{f.median:9.3f}{f.p90:9.3f}{f.out_of_memory_caught!s:>12}{f.false_rejects!s:>15}"
        )
    return "\n".join(lines)


@dataclass(frozen=True)
class Traced:
    """Relative errors of one set of traced models."""

    answered: Share
    layer_errors: tuple[float, ...]
    peak_errors: tuple[float, ...]
    phases_right: Share


def traced_figures(pairs: Sequence[tuple[Json, Json]]) -> Traced:
    """Holds saved bytes a layer, live peaks and peak phases against traces; a traced value of 0 does not compare."""
    errors: dict[str, list[float]] = {"model.saved_activation_bytes_per_layer": [], "peak.live_bytes": []}
    for row, answer in pairs:
        for path, traced in (
            ("model.saved_activation_bytes_per_layer", number(row, "saved_bytes_per_layer")),
            ("peak.live_bytes", number(row, "peak_live_bytes")),
        ):
            if traced and is_answered(answer):
                errors[path].append(abs(number(answer, path) - traced) / traced)
    phases = share(at(answer, "peak_phase") == at(row, "peak_phase") for row, answer in pairs)
    layers, peaks = (tuple(sorted(found)) for found in errors.values())
    return Traced(share(is_answered(answer) for _, answer in pairs), layers, peaks, phases)


def traced_line(name: str, found: Traced) -> str:
    """One line of the table of traced models."""
    cells = "".join(
        f"{median(e) if e else math.nan:12.5f}{max(e) if e else math.nan:10.5f}" for e in (found.layer_errors, found.peak_errors)
    )
    return f"{name:20}{found.answered!s:>10}{cells}{found.phases_right!s:>13}"


TRACED_HEADER = f"{'traced models':20}{'answered':>10}{'layer median':>12}{'max':>10}{'peak median':>12}{'max':>10}{'phase right':>13}"


def answered_rows(name: str, limit: int | None = None) -> list[tuple[Json, Json]]:
    """The rows of a golden file with their answers; a limit takes rows evenly over the file."""
    chosen = rows(name)
    chosen = chosen[:: max(1, len(chosen) // limit)] if limit else chosen
    return list(zip(chosen, ask([row["job"] for row in chosen]), strict=True))


def traced_sets() -> list[Path]:
    """The golden files of traced models."""
    return sorted(GOLDEN.glob("traced_*.jsonl"))
