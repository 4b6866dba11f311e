"""What the command `peakgate agent VERB` calls. Raises AgentError; only `run_agent` (main.py) runs for long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from peakgate.agent.control import ask, default_control
from peakgate.agent.doctor import node_findings
from peakgate.agent.drain import drain
from peakgate.agent.errors import UsageError
from peakgate.agent.glance import Glance, glance
from peakgate.agent.jobs_folder import JOBS_FOLDER
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.selftest.finding import Finding
from peakgate.agent.selftest.run import selftest
from peakgate.agent.start import default_spool, log_to_stderr, opened

ANSWER_MARGIN_SECONDS = 5.0
"""The agent needs a moment to answer once its own time is over."""


def look(*, simulate: str | None, cluster: str) -> Glance:
    """What is on this node's GPUs now, and whose it is."""
    log_to_stderr()
    _simulated(simulate)
    return glance(nvml=Nvml(module=load_pynvml()), cluster=cluster, jobs_folder=JOBS_FOLDER)


def check(*, simulate: str | None, server: str, spool: Path | None, control: Path | None) -> Iterator[Finding]:
    """What stands in the way of right figures on this node."""
    log_to_stderr()
    yield from selftest(simulate)
    yield from node_findings(server=server, spool=spool or default_spool(), control=control or default_control(), jobs_folder=JOBS_FOLDER)


def pause(*, control: Path | None, seconds: float, timeout_seconds: float) -> str:
    """Waits until the agent has closed NVML, which it opens again after so many seconds by itself; the state it is in."""
    return _state(control, timeout_seconds, verb="pause", seconds=seconds)


def resume(*, control: Path | None, timeout_seconds: float) -> str:
    """Waits until the agent watches again; the state it is in."""
    return _state(control, timeout_seconds, verb="resume")


def drain_spool(*, spool: Path | None, server: str, timeout_seconds: float) -> int:
    """Delivers what waits; how much still does."""
    log_to_stderr()
    path = spool or default_spool()
    if not path.exists():
        raise UsageError(f"there is no spool {path}", remedy="Name the agent's with --spool")
    opened_spool = opened(path)
    try:
        return asyncio.run(drain(spool=opened_spool, server=server, node=os.uname().nodename, timeout_seconds=timeout_seconds))
    finally:
        opened_spool.close()


def _state(control: Path | None, timeout_seconds: float, **request: object) -> str:
    answer = ask(
        control or default_control(), timeout_seconds=timeout_seconds + ANSWER_MARGIN_SECONDS, **request, timeout_limit=timeout_seconds
    )
    return str(answer["state"])


def _simulated(spec: str | None) -> None:
    if spec:
        from peakgate.agent.simulated.library import simulate

        simulate(spec)
