"""Opens the helper's socket for a run of the agent. An agent that cannot open it watches all the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import structlog

from peakgate.agent.errors import UsageError
from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.helper_socket import HelperSocket

log = structlog.get_logger("peakgate.agent")


@contextlib.contextmanager
def hearing(path: Path | None, reports: HelperReports) -> Iterator[None]:
    """Reports come in while this is open; None: none do. The socket's own folder is made where that is allowed."""
    opened = HelperSocket(path=path, receive=reports.take) if path else None
    if path and opened:
        try:
            with contextlib.suppress(OSError):
                path.parent.mkdir(mode=0o755, exist_ok=True)
            opened.start()
        except UsageError as error:
            log.warning("nothing is heard from in-process helpers", problem=str(error))
    try:
        yield
    finally:
        if opened:
            opened.stop()
