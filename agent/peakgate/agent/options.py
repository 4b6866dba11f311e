"""What the agent is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from peakgate.agent.errors import UsageError
from peakgate.agent.gpu_numbers import NUMBERS
from peakgate.agent.helper_socket import HELPER_SOCKET
from peakgate.agent.jobs_folder import JOBS_FOLDER
from peakgate.agent.sampler import DEVICE_PERIOD_SECONDS, PROCESS_PERIOD_SECONDS
from peakgate.agent.site_folders import JOBSTATS_FOLDER

KUBELET_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
TRANSPORTS = ("unary", "stream")
DEFAULT_INTERVAL_SECONDS = 30.0
"""10,000 nodes are then some 330 small batches a second for the service."""
HIGHEST_PORT = 65_535
MAX_NAME_LENGTH = 256
"""What the service takes as the name of a node or a cluster."""
LAST_DRAIN_SECONDS = 4.0
"""How long the agent tries to deliver what is left before it ends; the rest stays in the spool. Who presses Ctrl-C waits no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All settings of the agent; raises UsageError for a value that makes no sense."""

    server: str
    """host:port or unix:path of the service."""
    node: str
    """This node's name in reports."""
    cluster: str
    spool: Path
    simulate: str | None = None
    """A scenario of the simulated NVML: a name or a path, then variables after commas."""
    once: bool = False
    """Look once, send, end."""
    duration_seconds: float | None = None
    """End after this long; None: run until a signal."""
    transport: str = "unary"
    metrics_port: int | None = None
    """Port of the Prometheus metrics (9552 by custom); None: no metrics."""
    interval_seconds: float = DEFAULT_INTERVAL_SECONDS
    """Between two batches; what begins or ends a job is sent at once."""
    last_drain_seconds: float = LAST_DRAIN_SECONDS
    device_period_seconds: float = DEVICE_PERIOD_SECONDS
    process_period_seconds: float = PROCESS_PERIOD_SECONDS
    jobs_folder: Path = JOBS_FOLDER
    jobstats_folder: Path | None = JOBSTATS_FOLDER
    """Read while it exists; None: never."""
    dcgm_folder: Path | None = None
    """The folder that dcgm-exporter is given by --hpc-job-mapping-dir."""
    gpu_numbers: str = "auto"
    """Which number of a GPU the files of these two folders are named by: a word of gpu_numbers.NUMBERS."""
    kubelet_socket: Path | None = KUBELET_SOCKET
    """Asked where its folder exists at the start; None: never."""
    helper_socket: Path | None = HELPER_SOCKET
    """Where the in-process helper's datagrams come in; None: nowhere."""
    control: Path | None = None
    """Where `pause` and `resume` reach the agent; None: not at all."""
    record: Path | None = None
    """A file that every sample is written to as well, to be replayed."""
    enable_accounting: bool = False
    """Switch the driver's accounting on where it is off; needs root."""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise UsageError(f"transport {self.transport!r} is not known", remedy=f"Use one of: {', '.join(TRANSPORTS)}")
        if self.gpu_numbers not in NUMBERS:
            raise UsageError(f"gpu_numbers {self.gpu_numbers!r} is not known", remedy=f"Use one of: {', '.join(NUMBERS)}")
        for name in ("interval_seconds", "last_drain_seconds", "device_period_seconds", "process_period_seconds", "duration_seconds"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} must be above 0, not {value}")
        if not _is_address(self.server):
            raise UsageError(f"server must be HOST:PORT, not {self.server!r}")
        if self.metrics_port is not None and not 0 <= self.metrics_port <= HIGHEST_PORT:
            raise UsageError(f"metrics_port must be a port up to {HIGHEST_PORT}, not {self.metrics_port}")
        if not self.node:
            raise UsageError("node must not be empty")
        for name in ("node", "cluster"):
            if len(getattr(self, name)) > MAX_NAME_LENGTH or not getattr(self, name).isprintable():
                raise UsageError(f"{name} must be a line of at most {MAX_NAME_LENGTH} characters, or the service takes no row of it")


def _is_address(server: str) -> bool:
    """What gRPC takes as the name of a service (grpc/doc/naming.md). Without a port it would ask 443."""
    port = server.rpartition(":")[2]
    return server.startswith(("unix:", "unix-abstract:")) or (":" in server[1:] and port.isdecimal() and int(port) <= HIGHEST_PORT)
