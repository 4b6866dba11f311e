"""What was recorded gives the same rows again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, H100, ONE_GPU, START, SimulatedNode
from tests.unit.agent.test_watcher import SLURM_CGROUP, a_watcher

from peakgate.agent.errors import UsageError
from peakgate.agent.peaks import PeakRow
from peakgate.agent.recorder import Recorder
from peakgate.agent.replay import replay
from peakgate.agent.simulated.library import SimulatedNvml


def without_boot(rows: list[PeakRow]) -> dict[tuple[str, str, int, int, str], tuple[object, ...]]:
    """Rows by their key, but for the boot."""
    return {
        (row.key.cluster, row.key.job, row.key.pid, row.key.pid_start_ticks, row.key.source): (
            row.peak_bytes,
            row.peak_time,
            row.samples,
            row.gaps,
            row.flags,
            row.ended,
            row.uid,
            row.xid,
            row.longest_gap_seconds,
        )
        for row in rows
    }


def a_recording(simulated: SimulatedNvml, folder: Path) -> tuple[Path, list[PeakRow]]:
    """A run with a gap, a full card, accounting and the end of the job; the recording, and the rows of the spool."""
    gpu = f"epoch {START}\ngpu 0 uuid={GPU} {H100} accounting=on\n"
    error = "error 999 function=nvmlDeviceGetComputeRunningProcesses_v3 from=5 until=7\n"
    node = SimulatedNode(simulated, f"{gpu}process 0 pid=7 memory=0:1G,3:79G,10:end\n{error}")
    watcher, spool, stop = a_watcher(node, folder, rounds=60)
    recording = folder / "samples.jsonl"
    watcher._recorder = Recorder(path=recording, attribution=watcher.tracker._attribution, proc=watcher.tracker._proc)
    original = stop.wait

    def wait(timeout: float | None = None) -> bool:
        if node.now > 9.5 and (folder / "proc/7").exists():
            for path in (folder / "proc/7").iterdir():
                path.unlink()
            (folder / "proc/7").rmdir()
        return original(timeout)

    stop.wait = wait  # type: ignore[method-assign]  # the process leaves /proc when the scenario says
    watcher.run()
    watcher._recorder.close()
    rows = [peak.row for peak in spool.batch(limit=99, up_to_version=10_000)]
    spool.close()
    return recording, rows


def test_a_recording_gives_the_same_rows(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """Peaks, counts, flags, owners and the end, without the node's /proc."""
    recording, want = a_recording(simulated, tmp_path)
    rows, events = replay(recording)
    assert without_boot(rows) == without_boot(want)
    assert any(row.ended and row.gaps and row.flags for row in rows)
    assert events == []  # the process carried no prediction
    assert SLURM_CGROUP not in recording.read_text()


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("{", "line 2: JSONDecodeError"),
        ('{"kind": "Weather"}', "line 2: KeyError: 'Weather'"),
        ('{"kind": "DeviceSample", "time": 1}', "line 2: TypeError"),
        ('{"kind": "GpuGone", "gpu": {"uuid": "x", "colour": "red"}, "time": 1}', "line 2: TypeError"),
        ("[]", "line 2: TypeError"),
    ],
)
def test_a_line_that_is_no_sample_is_named(tmp_path: Path, line: str, want: str) -> None:
    """A recording of another version, or of something else."""
    gpu = {"uuid": GPU, "name": "H100", "total_bytes": 1}
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"kind": "ReadFailed", "gpu": gpu, "time": 1.0}) + f"\n{line}\n")
    with pytest.raises(UsageError, match=want):
        replay(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With the way to make one."""
    with pytest.raises(UsageError, match="--record"):
        replay(tmp_path / "nowhere")


def test_a_full_disk_ends_the_recording_and_not_the_watch(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """/dev/full takes no byte; the peaks are in the spool all the same."""
    node = SimulatedNode(simulated, f"{ONE_GPU}process 0 pid=7 memory=0:1G\n")
    watcher, spool, _ = a_watcher(node, tmp_path)
    watcher._recorder = Recorder(path=Path("/dev/full"), attribution=watcher.tracker._attribution, proc=watcher.tracker._proc)
    assert watcher.run_once()
    assert spool.waiting() == 2
    spool.close()
