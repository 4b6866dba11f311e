"""What ended jobs say of their predictions, as metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.server.attempts import a_peak, an_attempt, of_helper

from peakgate.server.accuracy import Accuracy, end_of, side_of
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.kinds import FAMILIES, FRAMEWORKS, GPU_MODELS, gpu_model, kind_of
from peakgate.server.observe import Observed, observe
from peakgate.server.store.records import Attempt, PeakRow

GROUP = "h100-80gb/megatron/zero1/one node"


def ended(*peaks: PeakRow, event: str = "finished", bound_bytes: int = 55_000, verdict: str = "ADMIT") -> tuple[Attempt, Observed]:
    """A job that was predicted to need 50,000 bytes, with what is seen of it."""
    attempt = replace(an_attempt(*peaks, event=event), bound_bytes=bound_bytes, verdict=verdict, group=GROUP)
    return attempt, observe(attempt, model_version="1", received_at=6.0)


@pytest.mark.parametrize(
    ("peak_bytes", "event", "bound_bytes", "want_side"),
    [
        (58_000, "finished", 55_000, "held"),
        (70_000, "finished", 55_000, "passed"),  # a need of 50,000 × 70/58
        (70_000, "oom", 55_000, "passed"),
        (50_000, "oom", 55_000, ""),  # it asked for an unknown amount more
        (58_000, "failed", 0, ""),  # an older version stored no bound
    ],
)
def test_the_side_of_the_bound(peak_bytes: int, event: str, bound_bytes: int, want_side: str) -> None:
    """Known needs held against what was given at Predict."""
    torch = of_helper(allocated=peak_bytes - 9000, reserved=peak_bytes)
    assert side_of(*ended(a_peak(peak_bytes=peak_bytes), torch, event=event, bound_bytes=bound_bytes)) == want_side


def test_ended_jobs_are_counted_by_gpu_and_framework() -> None:
    """The error, the side of the bound, and what became of a rejected job."""
    metrics = PrometheusMetrics()
    accuracy = Accuracy(metrics=metrics)
    accuracy.take(*ended(a_peak(peak_bytes=58_000), verdict="REJECT"))
    accuracy.take(*ended(a_peak(peak_bytes=70_000)))
    accuracy.take(*ended(a_peak(peak_bytes=79_000), event="oom", verdict="REJECT"))
    text = metrics.exposition().decode()
    kind = 'framework="megatron",gpu_model="h100"'
    assert f"peakgate_observed_over_predicted_ratio_count{{{kind}}} 2.0" in text
    assert 'peakgate_observed_over_predicted_ratio_bucket{framework="megatron",gpu_model="h100",le="1.0"} 1.0' in text
    assert 'peakgate_needs_total{bound="held",framework="megatron",gpu_model="h100"} 1.0' in text
    assert 'peakgate_rejected_jobs_total{outcome="fitted"} 1.0' in text
    assert 'peakgate_rejected_jobs_total{outcome="oom"} 1.0' in text


def test_an_end_that_nobody_saw_whole_says_nothing() -> None:
    """A rejected job that died early may have been too large."""
    assert end_of(*ended(a_peak(), event="failed", verdict="REJECT")) == "unknown"


def test_every_gpu_and_framework_has_its_kind() -> None:
    """Slices count with their card, desktop cards as one, and what submitters write never makes a new one."""
    assert [gpu_model(name) for name in ("h100-80gb", "h100-96gb/1g.12gb", "rtx-4090-24gb", "titan-rtx-24gb", "mine")] == [
        "h100", "h100", "rtx", "rtx", "other",
    ]  # fmt: skip
    assert kind_of("h100-80gb/3g.40gb/torchtitan-0.1/fsdp/one node") == ("h100", "pytorch")
    assert kind_of("unknown/huggingface-4.55/none/one node") == ("other", "huggingface")
    assert kind_of("") == ("other", "other")
    assert len(GPU_MODELS) * len(FRAMEWORKS) <= 150
    assert set(FAMILIES.values()) | {"other"} == set(FRAMEWORKS)
