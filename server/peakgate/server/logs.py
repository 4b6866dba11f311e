"""Structured logs. structlog is imported at the first line that is logged: a quiet embedded service never pays for it."""

from __future__ import annotations

import logging
import sys
from typing import Protocol


class Logger(Protocol):
    """An event and its fields."""

    def info(self, event: str, **fields: object) -> None:
        """Something an operator may want to know."""

    def warning(self, event: str, **fields: object) -> None:
        """Something an operator should look at."""

    def error(self, event: str, **fields: object) -> None:
        """Something that failed."""

    def exception(self, event: str, **fields: object) -> None:
        """Something that failed, with the traceback of the exception being handled."""


class QuietLogger:
    """The null twin: only a defect or a loss is worth a line on standard error, through the standard library."""

    def info(self, event: str, **fields: object) -> None:
        """Nothing."""

    def warning(self, event: str, **fields: object) -> None:
        """Nothing."""

    def error(self, event: str, **fields: object) -> None:
        """One line: what no caller's answer can carry any more, such as predictions that were lost at a stop."""
        logging.getLogger("peakgate").error("%s %s", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """The traceback, since the answer holds only an incident id."""
        logging.getLogger("peakgate").exception("%s %s", event, fields)


def structured_logger(level: str, *, as_json: bool) -> Logger:
    """A structlog logger that writes to standard error: key=value lines, or JSON lines."""
    import structlog

    processors: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer() if as_json else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
    ]
    logger: Logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper(), logging.INFO)),
    )
    return logger
