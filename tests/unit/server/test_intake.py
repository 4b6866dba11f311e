"""Which rows of a batch of peaks are believed."""

from __future__ import annotations

import math

import pytest
from google.protobuf.duration_pb2 import Duration

from peakgate.server.intake import Refusal, accept
from peakgate.server.store.records import PeakRow
from peakgate.v1.telemetry_service_pb2 import NodeInfo, PeakSample, PhasePeak

GPU = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"
NODE = NodeInfo(cluster="c", node="n1", boot_id="b", agent_version="1", driver_version="550")
NOW_US = 1_700_000_000_000_000


def a_sample(**changes: object) -> PeakSample:
    """A good row."""
    values: dict[str, object] = {
        "node": "n1",
        "gpu_uuid": GPU,
        "gpu_name": "NVIDIA H100 80GB HBM3",
        "gpu_total_bytes": 80_000,
        "job": "7",
        "prediction": "predictions/0",
        "peak_bytes": 60_000.0,
        "source": "sampled",
    }
    return PeakSample(**(values | changes))  # type: ignore[arg-type]  # protobuf checks the types


def refused(sample: PeakSample) -> str:
    """The reason word of a refused row."""
    result = accept(sample, NODE, received_us=NOW_US)
    assert isinstance(result, Refusal)
    assert result.message
    return result.reason


def test_a_good_row_is_taken_with_the_time_of_receipt_where_it_states_none() -> None:
    """Every figure arrives unchanged."""
    row = accept(a_sample(flags=["mps", "censored"], ended=True), NODE, received_us=NOW_US)
    assert isinstance(row, PeakRow)
    assert (row.peak_bytes, row.node, row.prediction, row.ended) == (60_000, "n1", "predictions/0", 1)
    assert (row.first_us, row.last_us, row.peak_us) == (NOW_US, NOW_US, NOW_US)
    assert row.flags == 8 | 1


@pytest.mark.parametrize(
    ("changes", "want_reason"),
    [
        ({"node": "n2"}, "NODE_MISMATCH"),
        ({"source": "guessed"}, "SOURCE_UNKNOWN"),
        ({"flags": ["mps", "from the future"]}, "FLAG_UNKNOWN"),
        ({"node": ""}, "NODE_MISMATCH"),
        ({"gpu_uuid": "0"}, "UUID_INVALID"),
        ({"gpu_uuid": ""}, "UUID_INVALID"),
        ({"peak_bytes": math.nan}, "PEAK_INVALID"),
        ({"peak_bytes": math.inf}, "PEAK_INVALID"),
        ({"peak_bytes": -math.inf}, "PEAK_INVALID"),
        ({"peak_bytes": -1.0}, "PEAK_INVALID"),
        ({"peak_bytes": 0.0}, "PEAK_INVALID"),
        ({"peak_bytes": 1e300}, "PEAK_INVALID"),
        ({"peak_bytes": 81_601.0}, "PEAK_ABOVE_CARD"),
        ({"gpu_total_bytes": -1}, "CARD_INVALID"),
        ({"torch_allocated_bytes": -1}, "TORCH_INVALID"),
        ({"pid": -1}, "NUMBER_INVALID"),
        ({"xid": 1 << 40}, "NUMBER_INVALID"),
        ({"longest_gap": Duration(seconds=-1)}, "TIME_INVALID"),
        ({"phases": [PhasePeak(phase="lunch")]}, "PHASE_UNKNOWN"),
        ({"phases": [PhasePeak(phase="forward", reserved_bytes=-1)]}, "TORCH_INVALID"),
        ({"job": "x" * 257}, "TEXT_INVALID"),
        ({"prediction": "a\x00b"}, "TEXT_INVALID"),
    ],
)
def test_a_bad_row_is_refused_with_its_reason(changes: dict[str, object], want_reason: str) -> None:
    """One word for a program, one line for a person."""
    assert refused(a_sample(**changes)) == want_reason


def test_a_peak_may_pass_the_card_by_two_percent() -> None:
    """What the driver rounds is no reason to lose a row."""
    assert isinstance(accept(a_sample(peak_bytes=81_600.0), NODE, received_us=NOW_US), PeakRow)


def test_an_unknown_card_takes_any_peak() -> None:
    """0 stands for unknown."""
    assert isinstance(accept(a_sample(gpu_total_bytes=0), NODE, received_us=NOW_US), PeakRow)


@pytest.mark.parametrize("uuid", [GPU, "MIG-" + GPU[4:], "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/7/0"])
def test_gpus_and_slices_have_uuids(uuid: str) -> None:
    """Whole cards, and slices in the forms of newer and older drivers."""
    assert isinstance(accept(a_sample(gpu_uuid=uuid), NODE, received_us=NOW_US), PeakRow)


def test_a_time_outside_the_calendar_is_refused() -> None:
    """A clock that was never set does not enter the store."""
    sample = a_sample()
    sample.last_time.seconds = -5
    assert refused(sample) == "TIME_INVALID"
