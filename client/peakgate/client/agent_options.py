"""The options of `peakgate agent` and its verbs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Transport(StrEnum):
    """How peaks are sent."""

    stream = "stream"
    unary = "unary"


class GpuNumbers(StrEnum):
    """Which number of a GPU a file is named by."""

    AUTO = "auto"
    INDEX = "index"
    MINOR = "minor"


AgentServer = Annotated[str, typer.Option(metavar="HOST:PORT", envvar="PEAKGATE_SERVER", help="The service that takes the peaks.")]
Simulate = Annotated[
    str | None, typer.Option(metavar="SCENARIO", help="A simulated NVML: a scenario's name or path, then ,VARIABLE=VALUE.")
]
NodeName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of this node. Default: the host's.")]
Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")]
Spool = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where peaks wait until they are acknowledged. Default: the user's state folder.")
]
Once = Annotated[bool, typer.Option("--once", help="One sample, sent, and out.")]
Duration = Annotated[
    float | None, typer.Option("--duration", metavar="SECONDS", help="Stop after so long. Default: run until told to stop.")
]
TransportForm = Annotated[Transport, typer.Option(help="One stream, or a call a batch.")]
MetricsPort = Annotated[
    int | None, typer.Option(metavar="PORT", help="Serve the agent's own metrics there (9552 by custom). Default: not at all.")
]
Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", help="Time between two batches; start and end of a job go at once.")
]
Control = Annotated[
    Path | None,
    typer.Option(metavar="SOCKET", help="Where pause and resume reach the agent. Default: in /run/peakgate or the state folder."),
]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Write every sample there too, to be replayed.")]
EnableAccounting = Annotated[
    bool, typer.Option("--enable-accounting", help="Switch the driver's accounting on, which keeps exact peaks; needs root.")
]
DcgmJobs = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Jobs of GPUs as dcgm-exporter reads them (--hpc-job-mapping-dir).")]
NumbersOfGpus = Annotated[
    GpuNumbers, typer.Option(help="What such files are named by: place in nvidia-smi, number in /dev/nvidiaN, or whichever is the same.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Wait at most so long.")]

HelperSocket = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Socket for trainings that report themselves. Default: /run/peakgate/agent.sock; none in a simulation."
    ),
]
