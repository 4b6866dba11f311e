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
from typing import Unpack

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
from peakgate.agent.told import Told

SYSTEM_SPOOL = Path("/var/lib/peakgate/agent.db")

log = structlog.get_logger("peakgate.agent")


def start(**told: Unpack[Told]) -> int:
    """See `peakgate.agent.main.run_agent`."""
    log_to_stderr()
    with contextlib.ExitStack() as stack:
        if told["spool"] is None and told["simulate"]:
            told["spool"] = Path(stack.enter_context(tempfile.TemporaryDirectory()), "agent.db")
        try:
            options = _options(told)
        except UsageError as error:
            log.error("agent not started", problem=str(error))  # noqa: TRY400 (a person reads it)
            return BAD_USAGE
        return run(options)


def _options(told: Told) -> Options:
    """What was told, and in place of what was not the node's own name and places. A simulation opens no socket that it was not told."""
    is_real = not told["simulate"]
    return Options(
        server=told["server"],
        simulate=told["simulate"],
        node=os.uname().nodename if told["node"] is None else told["node"],
        cluster=told["cluster"],
        spool=told["spool"] or default_spool(),
        once=told["once"],
        duration_seconds=told["duration_seconds"],
        transport=told["transport"],
        metrics_port=told["metrics_port"],
        interval_seconds=told["interval_seconds"],
        helper_socket=told.get("helper_socket") or (HELPER_SOCKET if is_real else None),
        control=told.get("control") or (default_control() if is_real else None),
        record=told.get("record"),
        enable_accounting=told.get("enable_accounting", False),
        dcgm_folder=told.get("dcgm_jobs"),
        gpu_numbers=told.get("gpu_numbers", "auto"),
    )


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
