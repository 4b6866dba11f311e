"""Options, start and metrics."""

from __future__ import annotations

import inspect
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.unit.agent.builders import GPU, ONE_GPU, START, SimulatedNode
from tests.unit.agent.test_watcher import TRAINER, a_watcher

from peakgate.agent.errors import UsageError
from peakgate.agent.gpu_numbers import NUMBERS
from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.helper_socket import Datagram
from peakgate.agent.kubelet import Kubelet
from peakgate.agent.metric_table import METRICS
from peakgate.agent.metrics import AgentCollector
from peakgate.agent.options import TRANSPORTS, Options
from peakgate.agent.peaks import Flag
from peakgate.agent.pod_devices import Holder, Holdings
from peakgate.agent.pod_watch import PodWatch
from peakgate.agent.proc import ProcFolder
from peakgate.agent.sender import Sender
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.told import Told
from peakgate.client.agent_options import GpuNumbers, Transport
from peakgate.client.commands.agent import run

ROOT = Path(__file__).parents[3]
RUN = """
import sys
{before}
from peakgate.agent.main import run_agent
sys.exit(run_agent(server="127.0.0.1:1", simulate={simulate!r}, node="n", cluster="alpha", spool=None, once=True, duration_seconds=None,
                   transport={transport!r}, metrics_port=None, interval_seconds=1.0))
"""


def started(*, before: str = "", simulate: str = "nowhere", transport: str = "unary") -> tuple[int, str]:
    """Exit status and standard error of a run in a process of its own."""
    program = RUN.format(before=before, simulate=simulate, transport=transport)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def an_options(folder: Path, **changes: object) -> Options:
    """Options that make sense, but for the changes."""
    values: dict[str, object] = {"server": "127.0.0.1:1", "node": "n", "cluster": "alpha", "spool": folder / "agent.db"}
    return Options(**values | changes)  # type: ignore[arg-type]  # each test changes what it is about


@pytest.mark.parametrize(
    "changes",
    [
        {"transport": "pigeon"},
        {"interval_seconds": 0.0},
        {"interval_seconds": float("nan")},
        {"duration_seconds": -1.0},
        {"server": ""},
        {"server": "service"},
        {"server": "service:99999"},
        {"server": "service:port"},
        {"metrics_port": 99_999},
        {"metrics_port": -1},
        {"node": ""},
        {"node": "two\nlines"},
        {"node": "n" * 257},
        {"cluster": "c" * 257},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    """Each is an error before anything is started."""
    with pytest.raises(UsageError):
        an_options(tmp_path, **changes)


@pytest.mark.parametrize("server", ["service:50551", "10.0.0.1:1", "[::1]:50551", "dns:///service:50551", "unix:/run/x", "unix-abstract:x"])
def test_a_service_is_named_as_grpc_names_it(tmp_path: Path, server: str) -> None:
    """By host and port, or by a socket."""
    assert an_options(tmp_path, server=server).server == server


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"simulate": "nowhere"}, "no scenario 'nowhere'"),
        ({"transport": "pigeon"}, "Use one of: unary, stream"),
        ({"before": "sys.modules['pynvml'] = None"}, "Install peakgate[agent]"),
        ({"before": "sys.modules['structlog'] = None"}, "not installed: structlog. Install peakgate[agent]"),
    ],
)
def test_a_start_that_cannot_be_is_one_clear_line(changes: dict[str, str], want: str) -> None:
    """Exit status 2, the remedy, and no traceback."""
    if "pynvml" in changes.get("before", ""):
        changes = changes | {"simulate": "demo"}
    status, text = started(**changes)
    assert (status, "Traceback" in text) == (2, False)
    assert want in text


def test_the_command_offers_what_the_agent_takes(tmp_path: Path) -> None:
    """Its words and its defaults stand in the command as well, which is read without the agent: they are the same."""
    assert {each.value for each in Transport} == set(TRANSPORTS)
    assert {each.value for each in GpuNumbers} == set(NUMBERS)
    offered = {name: each.default for name, each in inspect.signature(run).parameters.items() if name != "context"}
    renamed = {"duration": "duration_seconds", "interval": "interval_seconds"}
    assert {renamed.get(name, name) for name in offered} == set(Told.__annotations__)
    options = an_options(tmp_path)
    assert (offered["interval"], offered["transport"], offered["gpu_numbers"]) == (
        options.interval_seconds,
        options.transport,
        options.gpu_numbers,
    )


def test_every_flag_has_its_line_on_the_page() -> None:
    """docs/agent.md is where an operator finds what a word on a row means."""
    page = (ROOT / "docs" / "agent.md").read_text()
    assert [flag.name for flag in Flag if f"`{str(flag.name).lower()}`" not in page] == []


def test_every_metric_can_be_read(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The collector tells what the live parts know, all that the table has, and docs/agent.md names each of them."""
    node = SimulatedNode(simulated, ONE_GPU + TRAINER)
    watcher, spool, _ = a_watcher(node, tmp_path)
    watcher.run_once()
    sender = Sender(spool=spool, transport=None, stub=None, node=None, interval_seconds=1.0)  # type: ignore[arg-type]  # only its counters
    sender.delivery.refused["PEAK_ABOVE_CARD"] += 2
    registry = CollectorRegistry()
    pods = PodWatch(kubelet=Kubelet(socket=tmp_path / "kubelet.sock"))
    pods._holdings = Holdings({GPU: frozenset({Holder(namespace="research", pod="train-0", container="trainer")})})
    reports = HelperReports(proc=ProcFolder())
    reports.take(Datagram(pid=7, uid=0, gid=0, content=b"no report"))
    collector = AgentCollector(
        nvml=node.nvml, watcher=watcher, spool=spool, sender=sender, reports=reports, pods=pods, wall=lambda: START + 40
    )
    registry.register(collector)
    want = {
        ("peakgate_agent_attribution_refused", ()): 0.0,
        ("peakgate_agent_gpu_held_idle", (("gpu", GPU),)): None,
        ("peakgate_agent_up", ()): 0.0,
        ("peakgate_agent_paused", ()): 0.0,
        ("peakgate_agent_gpu_watched", (("gpu", GPU),)): 1.0,
        ("peakgate_agent_gpu_state", (("gpu", GPU), ("state", "watched"))): 1.0,
        ("peakgate_agent_gpu_state", (("gpu", GPU), ("state", "lost"))): 0.0,
        ("peakgate_agent_sample_age_seconds", (("gpu", GPU),)): 0.0,
        ("peakgate_agent_process_period_seconds", ()): 1.0,
        ("peakgate_agent_process_lists_ratio", ()): 0.0,
        ("peakgate_agent_spool_oldest_seconds", ()): 40.0,
        ("peakgate_agent_unattributed_bytes", (("gpu", GPU),)): 0.0,
        ("peakgate_agent_spool_rows", ()): 2.0,
        ("peakgate_agent_answered_timestamp_seconds", ()): 0.0,
        ("peakgate_agent_dropped_total", (("reason", "PEAK_ABOVE_CARD"),)): 2.0,
        ("peakgate_agent_helper_reports_total", (("outcome", "bad"),)): 1.0,
        ("peakgate_agent_helper_reports_total", (("outcome", "taken"),)): 0.0,
        ("peakgate_agent_nvml_calls_total", (("function", "nvmlDeviceGetCount"),)): 1.0,
    }
    assert {key: registry.get_sample_value(key[0], dict(key[1])) for key in want} == want
    page = (ROOT / "docs" / "agent.md").read_text()
    families = [family.name + ("_total" if family.type == "counter" else "") for family in collector.collect()]
    assert sorted(families) == sorted(metric.name for metric in METRICS)
    assert [name for name in families if f"`{name.removeprefix('peakgate_agent_')}`" not in page] == []
    own_bytes = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    assert registry.get_sample_value("peakgate_agent_resident_bytes") == pytest.approx(own_bytes, rel=0.1)
    watcher.tracker._open._open.clear()
    assert registry.get_sample_value("peakgate_agent_gpu_held_idle", {"gpu": GPU}) == 1.0
    pods.stop()
    spool.close()
