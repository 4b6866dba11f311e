"""Check-up of what the agent needs besides NVML: control groups, other users' environments, the spool, the sockets, the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc

from peakgate.agent.control import ask
from peakgate.agent.errors import AgentError, ServiceUnavailableError
from peakgate.agent.selftest.finding import Finding, failed, noted, passed
from peakgate.agent.spool_view import SpoolView
from peakgate.v1 import telemetry_service_pb2 as pb
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

CGROUP_ROOT = Path("/sys/fs/cgroup")
SKEW_SECONDS = 5.0
"""A time that lies ahead of the service's clock is stored as the moment of receipt, and an end is waited for by that clock: what is so
little off is lost in the half minute between two batches."""
_TIMEOUT_SECONDS = 3.0
"""A person waits for each answer of the check-up."""


def cgroup_finding(root: Path = CGROUP_ROOT) -> Finding:
    """Which form of control groups this node has: all are understood, and none at all leaves jobs unnamed."""
    if (root / "cgroup.controllers").exists():
        return passed("cgroup", f"version 2 at {root}{_slurm(root)}")
    hierarchies = sorted(entry.name for entry in root.iterdir() if entry.is_dir()) if root.is_dir() else []
    if hierarchies:
        both = " and version 2 beside it" if "unified" in hierarchies else ""
        return passed("cgroup", f"version 1 at {root}{both}{_slurm(root)}")
    remedy = "mount /sys/fs/cgroup into the agent's container"
    return failed("cgroup", f"no control groups at {root}", remedy)


def environment_finding(root: Path = Path("/proc")) -> Finding:
    """Whether the environment of other users' processes can be read, where a prediction's id stands."""
    others = 0
    for entry in root.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if entry.stat().st_uid == os.geteuid():
                continue
            others += 1
            with (entry / "environ").open("rb") as file:
                file.read(1)
        except FileNotFoundError:
            continue
        except OSError as error:
            remedy = "give the agent CAP_SYS_PTRACE (AmbientCapabilities= in its unit); else only the prolog's file names a prediction"
            return noted("environ", f"/proc/{entry.name}/environ: {error.strerror}", remedy)
    return passed("environ", f"readable ({others} processes of other users)")


def spool_finding(path: Path) -> Finding:
    """What waits in the spool, and whether it can be written."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not os.access(path if path.exists() else folder, os.W_OK):
        remedy = "name another with --spool, or run as its owner"
        return failed("spool", f"{path} cannot be written", remedy)
    if not path.exists():
        return passed("spool", f"{path}, not made yet")
    try:
        with closing(SpoolView(path)) as view:
            rows, events = view.rows(), view.events()
    except AgentError as error:
        return failed("spool", error.message, error.remedy)
    return passed("spool", f"{path}: {len(rows)} rows and {len(events)} job ends wait")


def jobs_folder_finding(folder: Path) -> Finding:
    """The drop-in files of a prolog."""
    if not folder.is_dir():
        found, remedy = f"{folder} is not there", "only needed where a prolog writes it; else jobs are found by control group"
        return noted("jobs", found, remedy)
    return passed("jobs", f"{folder}: {len(list(folder.glob('*.json')))} files")


def control_finding(path: Path) -> Finding:
    """Whether an agent runs here."""
    try:
        answer = ask(path, timeout_seconds=_TIMEOUT_SECONDS, verb="status")
    except AgentError as error:
        return noted("agent", error.message, "systemctl start peakgate-agent")
    return passed("agent", f"{answer['state']}, {path}")


def clock_finding(server: str) -> Finding:
    """How far this node's clock is from the service's: the middle of a round trip."""
    try:
        skew = _skew_seconds(server)
    except ServiceUnavailableError as error:
        return failed("service", error.message, "peaks wait in the spool until it is there")
    seen = f"{skew:+.1f} s against {server}"
    if abs(skew) > SKEW_SECONDS:
        return failed("clock", seen, "start chrony or systemd-timesyncd on the one that is wrong")
    return passed("clock", seen)


def node_findings(*, server: str, spool: Path, control: Path, jobs_folder: Path) -> Iterator[Finding]:
    """All of them."""
    yield cgroup_finding()
    yield environment_finding()
    yield jobs_folder_finding(jobs_folder)
    yield spool_finding(spool)
    yield control_finding(control)
    yield clock_finding(server)


def _slurm(root: Path) -> str:
    """Slurm 26.05 names a job's group by its SLUID (`s` and 13 letters) in place of job_N (src/common/sluid.h)."""
    scopes = [*root.glob("system.slice/*slurmstepd.scope"), *root.glob("slurm*"), *root.glob("memory/slurm*")]
    if not scopes:
        return ""
    names = {entry.name for scope in scopes for entry in scope.iterdir() if entry.is_dir()}
    by_sluid = any(len(name) == 14 and name.startswith("s") for name in names)
    return ", Slurm's jobs by SLUID" if by_sluid else ", Slurm"


def _skew_seconds(server: str) -> float:
    with grpc.insecure_channel(server) as channel:
        sent = time.time()
        try:
            answer = TelemetryServiceStub(channel).ReportPeaks(_empty_batch(), timeout=_TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            raise ServiceUnavailableError(f"{server} does not answer: {error.code().name}") from error
    middle = (sent + time.time()) / 2
    return middle - (answer.server_time.seconds + answer.server_time.nanos / 1e9)


def _empty_batch() -> pb.ReportPeaksRequest:
    return pb.ReportPeaksRequest(node=pb.NodeInfo(node=os.uname().nodename))
