"""The agent as a process: real trainings below a real shell, and a real kubelet API beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.integration.agent_service import RecordingService, a_process, an_agent, serving, until
from tests.unit.agent.pod_resources_api import KubeletService, a_container, a_pod
from tests.unit.agent.pod_resources_api import serving as serving_kubelet

GIB = 1 << 30
GPU = "GPU-00000000-0000-4000-8000-000000000000"
IDLE_GPU = "GPU-00000000-0000-4000-8000-000000000001"
CARD = "total=81559M reserved=480M name=NVIDIA_H100_80GB_HBM3"
TWO_GPUS = f"gpu 0 uuid={GPU} {CARD}\ngpu 1 uuid={IDLE_GPU} {CARD}\n"
SWEEP = "sleep 120 & echo $!; sleep 120 & echo $!; wait"
WITH_A_KUBELET = """
import json, sys
from pathlib import Path
from peakgate.agent.main import run
from peakgate.agent.options import Options
options = json.loads(sys.argv[1])
for name in ("spool", "kubelet_socket"):
    options[name] = Path(options[name])
sys.exit(run(Options(**options)))
"""


@pytest.fixture(autouse=True)
def _compiler() -> None:
    """The simulated NVML is compiled at its first use."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the simulated NVML (Debian: gcc libc6-dev)")


def scenario(folder: Path, *pids: int) -> str:
    """Two GPUs, and these processes on the first."""
    path = folder / "node.scn"
    path.write_text(TWO_GPUS + "".join(f"process 0 pid={pid} memory=0:{index + 1}G\n" for index, pid in enumerate(pids)))
    return str(path)


async def test_a_sweep_under_one_prediction_reaches_the_service_as_several(tmp_path: Path) -> None:
    """Two programs that one shell runs side by side: rows of their own, each marked, and nothing summed up to a training that was not."""
    service = RecordingService()
    environment = {"PEAKGATE_PREDICTION": "predictions/p1", "PATH": "/usr/bin:/bin"}
    sweep = await asyncio.create_subprocess_exec(
        "bash", "-c", SWEEP, stdout=asyncio.subprocess.PIPE, env=environment, start_new_session=True
    )
    assert sweep.stdout
    pids = [int(await sweep.stdout.readline()) for _ in range(2)]
    try:
        async with serving(service) as port, an_agent(port, tmp_path, simulate=scenario(tmp_path, *pids), duration_seconds=2.5) as agent:
            assert await agent.wait() == 0
    finally:
        os.killpg(sweep.pid, signal.SIGKILL)
        await sweep.communicate()
    rows = [peak for batch in service.batches for peak in batch.peaks if peak.prediction == "predictions/p1"]
    assert {(peak.pid, peak.peak_bytes / GIB) for peak in rows if peak.source == "sampled"} == {(0, 1), (0, 2), (pids[0], 1), (pids[1], 2)}
    assert [row for row in rows if "several" not in row.flags] == []
    assert len({peak.step for peak in rows}) == 2


@pytest.mark.parametrize("duration", [["--duration", "2.5"], []], ids=["for a while", "until it is stopped"])
async def test_the_command_reads_the_folder_of_dcgm_exporter(tmp_path: Path, duration: list[str]) -> None:
    """`--dcgm-jobs` reaches the agent in both forms that the command starts it in; the job is the one whose file names the GPU."""
    service = RecordingService()
    folder = tmp_path / "mapping"
    folder.mkdir()
    (folder / "0").write_text("402\n")
    async with a_process("sleep", "120") as trainer, serving(service) as port:
        places = ["--spool", str(tmp_path / "agent.db"), "--dcgm-jobs", str(folder), "--gpu-numbers", "index"]
        options = ["--server", f"127.0.0.1:{port}", "--simulate", scenario(tmp_path, trainer.pid), "--interval", "0.3", *places, *duration]
        async with a_process(str(Path(sys.executable).with_name("peakgate")), "agent", *options) as agent:
            await until(lambda: any(peak.job for batch in service.batches for peak in batch.peaks))
            agent.terminate()
            await agent.wait()
    assert {peak.job for batch in service.batches for peak in batch.peaks} == {"402"}


async def test_a_gpu_that_a_pod_holds_and_does_not_use_is_seen(tmp_path: Path, unused_tcp_port: int) -> None:
    """The kubelet names the holder of both GPUs; only the one without a process is idle."""
    kubelet = KubeletService()
    kubelet.pods = [a_pod("train-0", a_container(gpu=[GPU, f"{IDLE_GPU}::1"]))]
    service = RecordingService()
    options = {"simulate": scenario(tmp_path, 4999001), "metrics_port": unused_tcp_port, "kubelet_socket": str(tmp_path / "kubelet.sock")}
    with serving_kubelet(kubelet, tmp_path / "kubelet.sock"):
        async with serving(service) as port, an_agent(port, tmp_path, program=WITH_A_KUBELET, duration_seconds=None, **options) as agent:
            await until(lambda: kubelet.calls and service.batches)
            text = await asyncio.to_thread(_read, f"http://127.0.0.1:{unused_tcp_port}/metrics")
            agent.terminate()
            assert await agent.wait() == 0
    idle = [line for line in text.splitlines() if line.startswith("peakgate_agent_gpu_held_idle{")]
    assert idle == [f'peakgate_agent_gpu_held_idle{{gpu="{IDLE_GPU}"}} 1.0']
    assert "peakgate_agent_attribution_refused 0.0" in text


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())
