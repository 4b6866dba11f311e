"""Starts the agent: settings, library, spool, then one run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs
import structlog

from peakgate.agent.control import default_control
from peakgate.agent.errors import BAD_USAGE, AgentError, UsageError
from peakgate.agent.helper_socket import HELPER_SOCKET
from peakgate.agent.node_agent import NodeAgent
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.options import Options
from peakgate.agent.spool import Spool

SYSTEM_SPOOL = Path("/var/lib/peakgate/agent.db")

log = structlog.get_logger("peakgate.agent")


def start(
    *,
    server: str,
    simulate: str | None,
    node: str | None,
    cluster: str,
    spool: Path | None,
    once: bool,
    duration_seconds: float | None,
    transport: str,
    metrics_port: int | None,
    interval_seconds: float,
    control: Path | None,
    record: Path | None,
    enable_accounting: bool,
    dcgm_jobs: Path | None,
    gpu_numbers: str,
    helper_socket: Path | None,
) -> int:
    """See `peakgate.agent.main.run_agent`."""
    log_to_stderr()
    with contextlib.ExitStack() as stack:
        if spool is None:
            spool = Path(stack.enter_context(tempfile.TemporaryDirectory()), "agent.db") if simulate else default_spool()
        if control is None and not simulate:
            control = default_control()
        try:
            options = Options(
                server=server,
                simulate=simulate,
                node=os.uname().nodename if node is None else node,
                cluster=cluster,
                spool=spool,
                once=once,
                duration_seconds=duration_seconds,
                transport=transport,
                metrics_port=metrics_port,
                interval_seconds=interval_seconds,
                helper_socket=helper_socket or (None if simulate else HELPER_SOCKET),
                control=control,
                record=record,
                enable_accounting=enable_accounting,
                dcgm_folder=dcgm_jobs,
                gpu_numbers=gpu_numbers,
            )
        except UsageError as error:
            log.error("agent not started", problem=str(error))  # noqa: TRY400 (a person reads it)
            return BAD_USAGE
        return run(options)


def run(options: Options, *, restart: Callable[[], None] | None = None) -> int:
    """The same with the options in one piece. `restart` replaces this process after a driver update."""
    try:
        if options.simulate:
            from peakgate.agent.simulated.library import simulate

            simulate(options.simulate)
        nvml = Nvml(module=load_pynvml())
        spool = opened(options.spool)
    except AgentError as error:
        log.error("agent not started", problem=str(error))  # noqa: TRY400 (a person reads it)
        return BAD_USAGE
    try:
        status, driver_replaced = asyncio.run(NodeAgent(options=options, nvml=nvml, spool=spool).run())
    except UsageError as error:
        log.error("agent not started", problem=str(error))  # noqa: TRY400 (a person reads it)
        return BAD_USAGE
    finally:
        spool.close()
    if driver_replaced and not options.simulate:  # a scenario would replace it again and again
        log.warning("driver replaced, starting again")
        (restart or _restart)()
    return status


def default_spool() -> Path:
    """Where the spool lies when nobody says."""
    if os.access(SYSTEM_SPOOL.parent, os.W_OK):
        return SYSTEM_SPOOL
    return platformdirs.user_state_path("peakgate") / "agent.db"


def log_to_stderr() -> None:
    """Standard output is for results; a program that has set up its own logging keeps it."""
    if not structlog.is_configured():
        stamp = structlog.processors.TimeStamper(fmt="iso")
        words = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"])
        structlog.configure(
            processors=[structlog.processors.add_log_level, stamp, words],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )


def opened(path: Path) -> Spool:
    """The spool of that file. Raises UsageError."""
    try:
        return Spool(path=path)
    except (OSError, sqlite3.Error) as error:
        raise UsageError(f"the spool {path} cannot be opened: {error}", remedy="Name one that this user may write with --spool") from error


def _restart() -> None:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 (the same command again)
