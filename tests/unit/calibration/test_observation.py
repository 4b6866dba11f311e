"""What an observation says of the need."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.unit.calibration.builders import GB, a_subject, an_observation

from peakgate.calibration import Observation


def a_seen(*, lower_gb: float = 30.0, upper_gb: float | None = 44.0, device_gb: float = 44.0) -> Observation:
    """A job that was predicted to need 40 GB and to show `device_gb`."""
    subject = replace(a_subject(), device_bytes=round(device_gb * GB))
    upper_bytes = None if upper_gb is None else round(upper_gb * GB)
    return Observation(prediction="p", subject=subject, lower_bytes=round(lower_gb * GB), upper_bytes=upper_bytes, finished_at=0.0)


@pytest.mark.parametrize(
    ("observation", "want_gb"),
    [
        (a_seen(), 40.0),
        (a_seen(upper_gb=48.4), 44.0),
        (a_seen(lower_gb=42.0), 42.0),
        (a_seen(upper_gb=44.0, device_gb=36.0), 44.0),
        (a_seen(upper_gb=None, lower_gb=38.0), 38.0),
    ],
)
def test_the_need_follows_the_device_peak_inside_what_is_known(observation: Observation, want_gb: float) -> None:
    """A job that shows what was predicted needs what was predicted, a tenth more is a tenth more; never outside the known interval."""
    assert observation.need_bytes / GB == pytest.approx(want_gb)


def test_the_residual_is_what_is_not_counted() -> None:
    """40 GB needed, 38 of them counted."""
    assert a_seen().residual == pytest.approx(2.0)


@pytest.mark.parametrize(("need_gb", "exact", "want"), [(72.0, False, True), (71.9, False, False), (75.0, True, False)])
def test_an_out_of_memory_on_a_full_card_is_the_jobs_own(need_gb: float, exact: bool, want: bool) -> None:
    """From nine tenths of the card on."""
    assert an_observation(need_gb, exact=exact).fills_the_card == want


def test_a_subject_keeps_what_its_residual_depends_on() -> None:
    """A constant, activations, states; two nodes, the framework's first; the unknown card has no size."""
    subject = a_subject(card_gb=0)
    assert subject.features == pytest.approx((1.0, 10.0, 28.0))
    assert (subject.counted, subject.prior_residual, subject.card) == (38.0, 2.0, 0.0)
    assert subject.scale == pytest.approx(0.15 + 0.02 * 10)
    assert subject.levels == ("framework fsdp", "group h100/fsdp/one")
    assert an_observation().received_at == math.inf
