"""The agent as a process, over the simulated NVML, against a real service on loopback."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.agent_service import (
    IN_A_HURRY,
    ON_A_FULL_DISK,
    WITHOUT_A_DRIVER,
    RecordingService,
    a_process,
    an_agent,
    hang,
    serving,
    store,
    until,
)

from peakgate.v1 import telemetry_service_pb2 as pb

GIB = 1 << 30
GPU = "GPU-00000000-0000-4000-8000-000000000000"
OTHER_GPU = "GPU-00000000-0000-4000-8000-000000000001"
STRANGER_PID = 4999002
PREDICTION = "predictions/p1"
TRANSPORTS = ["unary", "stream"]


@pytest.fixture(autouse=True)
def _compiler() -> None:
    """The simulated NVML is compiled at its first use."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")


def waiting_rows(spool: Path) -> int:
    """Rows in a spool that nobody has open."""
    with closing(sqlite3.connect(spool)) as connection:
        return int(connection.execute("SELECT count(*) FROM peaks").fetchone()[0])


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_jobs_peak_and_end_reach_the_service(tmp_path: Path, transport: str) -> None:
    """A real process with a prediction is found by /proc; its peak, its end and the stranger beside it are reported."""
    service = RecordingService()
    async with serving(service) as port, a_process("sleep", "120", environment={"PEAKGATE_PREDICTION": PREDICTION}) as trainer:
        scenario = f"demo,PID={trainer.pid},PEAK=61G,SECONDS=5"
        async with an_agent(port, tmp_path, simulate=scenario, transport=transport, duration_seconds=9.0) as agent:
            assert await agent.wait() == 0
    peaks = service.peaks()
    assert {key: (peak.peak_bytes / GIB, peak.ended) for key, peak in peaks.items() if key[2]} == {
        (GPU, 0, PREDICTION): (61, True),
        (GPU, trainer.pid, PREDICTION): (61, True),
    }
    stranger = peaks[OTHER_GPU, STRANGER_PID, ""]
    assert (stranger.peak_bytes, list(stranger.flags), stranger.ended) == (3 * GIB, ["unattributed"], False)
    assert [(event.prediction, event.event, event.cluster) for event in service.events] == [(PREDICTION, "finished", "alpha")]
    assert (len(service.unary) > 0, len(service.streamed) > 0) == (transport == "unary", transport == "stream")
    sequences = [batch.sequence for batch in service.batches]
    assert sequences == list(range(1, len(sequences) + 1))
    node = service.batches[-1].node
    assert (node.cluster, node.node, node.driver_version, len(node.boot_id)) == ("alpha", "node-1", "580.105.08", 36)
    assert waiting_rows(tmp_path / "agent.db") == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_service_that_dies_between_send_and_answer_loses_nothing(tmp_path: Path, transport: str) -> None:
    """What was sent and not answered is sent again to the service that comes after it."""
    dying, next_one = RecordingService(hang), RecordingService()
    async with serving(dying) as port:
        agent_context = an_agent(port, tmp_path, transport=transport, duration_seconds=None)
        agent = await agent_context.__aenter__()
        await until(lambda: dying.batches)
    async with serving(next_one, port):
        await until(lambda: dying.peaks().keys() <= next_one.peaks().keys())
        agent.terminate()
        assert await agent.wait() == 0
    await agent_context.__aexit__(None, None, None)
    assert dying.peaks()
    assert waiting_rows(tmp_path / "agent.db") == 0


async def test_a_killed_agent_delivers_at_its_next_start(tmp_path: Path) -> None:
    """kill -9 while the service is away: the rows are in the spool, and the next agent brings them."""
    spool = tmp_path / "agent.db"
    async with an_agent(1, tmp_path, simulate="demo,PEAK=40G") as agent:
        await until(lambda: spool.exists() and _peak_in(spool) >= 40 * GIB)
        agent.kill()
        await agent.wait()
    service = RecordingService()
    empty = tmp_path / "empty.scn"
    empty.write_text(f"gpu 0 uuid={GPU} total=80G\n")
    async with serving(service) as port, an_agent(port, tmp_path, simulate=str(empty), once=True) as agent:
        assert await agent.wait() == 0
    assert {(peak.gpu_uuid, peak.peak_bytes / GIB) for peak in service.peaks().values()} == {(GPU, 40), (OTHER_GPU, 3)}
    assert waiting_rows(spool) == 0


async def test_a_job_that_ends_while_no_agent_runs_has_ended_at_the_next_start(tmp_path: Path) -> None:
    """kill -9 of the agent, then the end of the job: its rows end, truncated, and its end is told."""
    service, empty = RecordingService(), tmp_path / "empty.scn"
    empty.write_text(f"gpu 0 uuid={GPU} total=80G\n")
    async with serving(service) as port:
        async with (
            a_process("sleep", "120", environment={"PEAKGATE_PREDICTION": PREDICTION}) as trainer,
            an_agent(port, tmp_path, simulate=f"demo,PID={trainer.pid},PEAK=40G,SECONDS=90") as agent,
        ):
            await until(lambda: (peak := service.peaks().get((GPU, 0, PREDICTION))) and peak.peak_bytes == 40 * GIB)
            agent.kill()
            await agent.wait()
        assert service.events == []
        async with an_agent(port, tmp_path, simulate=str(empty), once=True) as agent:
            assert await agent.wait() == 0
    assert [(event.prediction, event.event) for event in service.events] == [(PREDICTION, "finished")]
    rows = [peak for batch in service.batches for peak in batch.peaks if peak.prediction == PREDICTION and peak.ended]
    assert {(row.pid, tuple(row.flags)) for row in rows} == {(trainer.pid, ("truncated",)), (0, ("truncated",))}


def _peak_in(spool: Path) -> int:
    """The highest peak in a spool that an agent has open."""
    try:
        with closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT max(peak_bytes) FROM peaks").fetchone()[0] or 0)
    except sqlite3.OperationalError:
        return 0


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_refused_row_is_dropped_and_the_others_go_on(tmp_path: Path, transport: str) -> None:
    """The service refuses the stranger's row each time; it does not pile up, and the agent ends well."""

    async def picky(batch: pb.ReportPeaksRequest) -> pb.ReportPeaksResponse:
        bad = [index for index, peak in enumerate(batch.peaks) if peak.pid == STRANGER_PID]
        refused = [pb.RefusedPeak(index=index, reason="PEAK_ABOVE_CARD", message="no") for index in bad]
        return pb.ReportPeaksResponse(sequence=batch.sequence, stored=len(batch.peaks) - len(bad), refused=refused)

    async with serving(RecordingService(picky)) as port, an_agent(port, tmp_path, transport=transport, duration_seconds=2.0) as agent:
        _, errors = await agent.communicate()
    assert agent.returncode == 0
    assert b'event="peak refused" reason=PEAK_ABOVE_CARD' in errors
    assert waiting_rows(tmp_path / "agent.db") == 0


async def test_peaks_that_nobody_takes_are_kept_and_said(tmp_path: Path) -> None:
    """Without a service the last drain gives up after a while; the status tells, the spool keeps."""
    async with an_agent(1, tmp_path, program=IN_A_HURRY, once=True) as agent:
        assert await agent.wait() == 4
    assert waiting_rows(tmp_path / "agent.db") == 2


async def test_peaks_that_no_disk_takes_are_said_to_be_lost(tmp_path: Path) -> None:
    """The disk is full to the end: the status tells that not everything was delivered."""
    async with serving(RecordingService()) as port, an_agent(port, tmp_path, program=ON_A_FULL_DISK, once=True) as agent:
        _, errors = await agent.communicate()
    assert agent.returncode == 4
    assert b"lost, because the spool could not be written" in errors


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_ctrl_c_says_what_it_waits_for_and_ends_soon(tmp_path: Path, transport: str) -> None:
    """A service that never answers holds the end up for some seconds, not for the time that a call may take; the rows are kept."""
    service = RecordingService(hang)
    async with serving(service) as port, an_agent(port, tmp_path, transport=transport, duration_seconds=None) as agent:
        await until(lambda: service.batches)
        agent.send_signal(signal.SIGINT)
        async with asyncio.timeout(6):
            _, errors = await agent.communicate()
    assert agent.returncode == 4
    assert b"delivering what is left" in errors
    assert b"not delivered, kept for the next start" in errors
    assert b"Traceback" not in errors
    assert waiting_rows(tmp_path / "agent.db") > 0


async def test_a_second_ctrl_c_leaves_the_rest_at_once(tmp_path: Path) -> None:
    """Also in a single look, of which the delivery is all that takes time."""
    async with an_agent(1, tmp_path, once=True) as agent:
        assert agent.stderr is not None
        while b"delivering what is left" not in await agent.stderr.readline():
            pass
        agent.send_signal(signal.SIGINT)
        async with asyncio.timeout(2):
            assert await agent.wait() == 4


async def test_a_node_without_a_driver_is_told_so(tmp_path: Path) -> None:
    """One look finds nothing to look at: that is no failure, and standard error says it in plain words."""
    async with an_agent(1, tmp_path, program=WITHOUT_A_DRIVER, simulate=None, once=True) as agent:
        _, errors = await agent.communicate()
    assert agent.returncode == 0
    assert b"no GPU driver answers on this node" in errors


async def test_the_metrics_are_served(tmp_path: Path, unused_tcp_port: int) -> None:
    """Prometheus finds the agent's figures on its port."""
    service = RecordingService(store)
    async with serving(service) as port, an_agent(port, tmp_path, metrics_port=unused_tcp_port, duration_seconds=None) as agent:
        await until(lambda: service.batches)
        text = await asyncio.to_thread(_read, f"http://127.0.0.1:{unused_tcp_port}/metrics")
        agent.terminate()
        assert await agent.wait() == 0
    assert "peakgate_agent_up 1.0" in text
    assert f'peakgate_agent_gpu_watched{{gpu="{OTHER_GPU}"}} 1.0' in text


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())
