"""What an observation says of the need."""

from __future__ import annotations

from peakgate.calibration import Observation


def an_observation(*, lower_bytes: int = 800, upper_bytes: int | None = 1100, device_bytes: int = 1100) -> Observation:
    """A job that was predicted to need 1000 bytes and to show `device_bytes`."""
    return Observation(
        prediction="predictions/1",
        group="huggingface/none/fp32",
        required_bytes=1000,
        device_bytes=device_bytes,
        lower_bytes=lower_bytes,
        upper_bytes=upper_bytes,
        finished_at=0.0,
    )


def test_a_device_peak_is_compared_with_the_device_prediction() -> None:
    """A job that shows what was predicted needs what was predicted, however much of it the allocator only cached."""
    assert an_observation(upper_bytes=1100, device_bytes=1100).need_bytes == 1000


def test_the_relative_error_carries_over() -> None:
    """A tenth more on the device is a tenth more of the need."""
    assert round(an_observation(upper_bytes=1210, device_bytes=1100).need_bytes) == 1100


def test_the_need_stays_inside_the_known_interval() -> None:
    """Live blocks bound it from below, the device peak from above."""
    assert an_observation(lower_bytes=1050, upper_bytes=1100).need_bytes == 1050
    assert an_observation(upper_bytes=1100, device_bytes=900).need_bytes == 1100


def test_out_of_memory_says_only_at_least() -> None:
    """Without an upper bound the need is at least the lower one."""
    assert an_observation(lower_bytes=950, upper_bytes=None).need_bytes == 950
