"""`python -m tests.histories`: a site's past that is made up, of real jobs as the memory model predicts them and needs that differ."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.server.convert import job_from_message
from peakgate.server.memory import memory_model
from peakgate.v1.document import parse_job

GB = 1e9
CARDS = ("a10g-24gb", "rtx-4090-24gb", "a100-40gb", "h100-80gb")
MODELS = ("llama-3.2-1b", "llama-3.2-3b", "qwen2.5-1.5b", "qwen2.5-3b")
LENGTHS = (512, 1024, 1536, 2048, 3072, 4096)
MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 7, 8)
USERS = 20
FIRST_SECOND = 1_750_000_000

# How needs differ from what is predicted, as shares of the activations and GB: the world of tests/bench/cluster_sim.py in small.
OFFSET_GB = 0.8
SCATTER = 0.02
HEAVY_SHARE, HEAVY_RATIO = 0.06, 0.25
UPGRADE_GB = 2.0
EARLY_SHARE = 0.04


def a_document(card: str, model: str, length: int, micro_batch_size: int) -> dict[str, Any]:
    """The full fine-tuning of a small model on one GPU."""
    return {
        "model": {"preset": model},
        "batch": {"micro_batch_size": micro_batch_size, "sequence_length": length},
        "precision": {"recipe": "bf16"},
        "optimizer": {"name": "adamw"},
        "framework": {"name": "huggingface", "version": "4.57.6", "torch": "2.9"},
        "attention": {"implementation": "sdpa"},
        "gpu": {"type": card, "count": 1},
    }


@cache
def figures(*of: Any) -> tuple[Prediction, int]:
    """What is predicted of such a job, and its card's total in bytes."""
    job = job_from_message(parse_job(a_document(*of)))
    capacity = memory_model().capacity_of(job)
    assert capacity is not None
    return predict(job), capacity.total_bytes


def a_history(attempts: int, *, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Attempts of a site that had no gate, so that every job ran. In its second half everything needs 2 GB more."""
    draw, now = random.Random(seed), float(FIRST_SECOND)
    for number in range(attempts):
        of = draw.choice(CARDS), draw.choice(MODELS), draw.choice(LENGTHS), draw.choice(MICRO_BATCHES)
        prediction, card_bytes = figures(*of)
        activations = prediction.saved_activation_bytes_per_layer * 20
        need = prediction.required_bytes + OFFSET_GB * GB + draw.gauss(0, SCATTER) * activations
        need += UPGRADE_GB * GB if number >= attempts // 2 else 0
        need *= 1 + (HEAVY_RATIO * draw.random() if draw.random() < HEAVY_SHARE else 0)
        now += draw.expovariate(1 / 120)
        if prediction.required_bytes > 1.5 * card_bytes:
            continue
        attempt = {
            "job": a_document(*of),
            "submitted_at": round(now, 3),
            "finished_at": round(now + draw.uniform(300, 7200), 3),
            "user": f"user-{draw.randrange(USERS)}",
        }
        yield attempt | _seen(need, prediction, card_bytes, draw)


def _seen(need: float, prediction: Prediction, card_bytes: int, draw: random.Random) -> dict[str, Any]:
    if draw.random() < EARLY_SHARE:
        return {"outcome": "failed", "observed_bytes": round(min(need, card_bytes) * draw.uniform(0.3, 0.9))}
    if need > card_bytes:
        return {"outcome": "oom", "observed_bytes": round(0.97 * card_bytes)}
    on_the_device = need * prediction.device_bytes / prediction.required_bytes
    return {"outcome": "finished", "observed_bytes": round(min(on_the_device, card_bytes))}


def main() -> None:
    """Prints the history that docs/calibration.md replays."""
    for each in a_history(6000, seed=7):
        print(json.dumps(each))


if __name__ == "__main__":
    main()
