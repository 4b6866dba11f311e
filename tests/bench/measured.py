"""`python -m tests.bench.measured`: the calibration on networks measured on a GPU, each predicted by the memory model, revealed one by one.

2000 fully connected networks of GPUMemNet (tests/golden/README.md), trained with PyTorch and Adam in float32; the peak is that of the whole
card, so what is bounded is the predicted device peak. The order is random; the first hundred of an order do not count.
"""

from __future__ import annotations

import csv
import gzip
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tests.bench.bounds import bar

from peakgate.calibration import Calibrator, Observation, Subject
from peakgate.memory.job import Job
from peakgate.memory.predict import predict
from peakgate.server.convert import job_from_message
from peakgate.v1.document import parse_job

NETWORKS = Path(__file__).parents[1] / "golden" / "gpumemnet_mlp.csv.gz"
MIB = 1 << 20
CARD = "a100-40gb"
CARD_BYTES = 40 * 1024 * MIB
NAMES = {"batch_normalization": "batch_norm", "LeakyReLU": "leaky_relu"}
"""Where the source's name is not the document's in capitals."""
COVERAGE = 0.95
FIRST = 100
"""Networks of an order that do not count."""
ORDERS = 20

LEAST_MISSES, MOST_MISSES = bar("measured_networks_least_misses"), bar("measured_networks_most_misses")
MOST_ABOVE = bar("measured_networks_bound_above_peak")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A network as the calibration sees it, and the peak of its card."""

    subject: Subject
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """One order: share of peaks above their bound, and by how much the bound lies above the peak in the mean."""

    misses: float
    above: float


def networks(*, every: int = 1) -> list[Measured]:
    """Every so-manieth network, predicted."""
    with gzip.open(NETWORKS, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Measured(subject=subject_of(job_of(row)), peak_bytes=int(row["peak_mib"]) * MIB) for row in rows[::every]]


def job_of(row: Mapping[str, str]) -> Job:
    """The job document of a row."""
    layers = [_operation(word) for word in row["operations"].split()]
    document = {
        "model": {"operations": {"input": [int(row["input_size"])], "loss": "cross_entropy", "layers": layers}},
        "batch": {"micro_batch_size": int(row["batch_size"])},
        "optimizer": {"name": "adam"},
        "precision": {"recipe": "fp32"},
        "framework": {"name": "torch"},
        "gpu": {"type": CARD},
    }
    return job_from_message(parse_job(document))


def _operation(word: str) -> dict[str, object]:
    name, outputs, _ = word.split(":")
    operation = {"op": NAMES.get(name, name.lower())}
    return {**operation, "out": int(outputs)} if name == "linear" else {**operation}


def subject_of(job: Job) -> Subject:
    """What the calibration is told of a job whose device peak is bounded."""
    prediction = predict(job)
    parts = {category: sum(line.bytes for line in prediction.ledger if line.category == category) for category in _CATEGORIES}
    return Subject(
        group=f"{CARD}/{prediction.group}",
        framework=prediction.group,
        card_bytes=CARD_BYTES,
        required_bytes=prediction.device_bytes,
        device_bytes=prediction.device_bytes,
        runtime_bytes=parts["runtime"],
        activation_bytes=parts["activations"] + parts["logits"],
        state_bytes=prediction.states_bytes,
    )


_CATEGORIES = ("runtime", "activations", "logits")


def reveal(measured: Sequence[Measured], seed: int) -> Revealed:
    """Bounds each network before its peak is learned, in a random order."""
    order = random.Random(seed).sample(measured, len(measured))
    calibrator, ratios = Calibrator(), list[float]()
    for index, network in enumerate(order):
        if index >= FIRST:
            ratios.append(calibrator.snapshot().bound(network.subject, coverage=COVERAGE).bound_bytes / network.peak_bytes)
        calibrator.learn(
            Observation(
                prediction=str(index),
                subject=network.subject,
                lower_bytes=network.peak_bytes,
                upper_bytes=network.peak_bytes,
                finished_at=float(index),
            )
        )
    return Revealed(misses=fmean(ratio < 1 for ratio in ratios), above=fmean(ratios) - 1)


def main() -> bool:
    """Prints each order and their mean; whether the bars hold."""
    measured = networks()
    found = [reveal(measured, seed) for seed in range(ORDERS)]
    for seed, each in enumerate(found):
        print(f"order {seed:2}: {each.misses:.2%} of the peaks above their bound, the bound {each.above:.2%} above the peak")
    misses, above = fmean(each.misses for each in found), fmean(each.above for each in found)
    holds = LEAST_MISSES <= misses <= MOST_MISSES and above <= MOST_ABOVE
    print(
        f"mean of {ORDERS} orders: {misses:.2%} (bar {LEAST_MISSES:.0%} to {MOST_MISSES:.0%}), {above:.2%} (bar {MOST_ABOVE:.0%}): ", end=""
    )
    print("holds" if holds else "BROKEN")
    return holds


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
