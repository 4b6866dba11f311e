"""What `peakgate serve` and `peakgate db upgrade` run. Returns exit statuses: 0 done, 2 bad settings, 4 database or port not usable."""

from __future__ import annotations

import asyncio
import sys

from pydantic import ValidationError

from peakgate.server.app import Addresses, serve
from peakgate.server.errors import PeakgateError
from peakgate.server.logs import structured_logger
from peakgate.server.settings import Settings, problems
from peakgate.server.store.migrate import upgrade

EXIT_USAGE = 2
EXIT_UNAVAILABLE = 4


def run_server(
    *,
    host: str | None = None,
    grpc_port: int | None = None,
    http_port: int | None = None,
    database_url: str | None = None,
    log_level: str | None = None,
    log_json: bool | None = None,
) -> int:
    """Serves until SIGTERM or SIGINT. What is None comes from PEAKGATE_* variables, else from the defaults.

    Prints one line with both addresses on standard output once the service answers; logs go to standard error.
    """
    stated = {
        "host": host,
        "grpc_port": grpc_port,
        "http_port": http_port,
        "database_url": database_url,
        "log_level": log_level,
        "log_json": log_json,
    }
    try:
        settings = Settings.model_validate(Settings().model_dump() | {name: value for name, value in stated.items() if value is not None})
    except ValidationError as error:
        return _fail(problems(error), EXIT_USAGE)
    log = structured_logger(settings.log_level, as_json=settings.log_json)
    try:
        asyncio.run(serve(settings, log, on_ready=_announce))
    except (PeakgateError, OSError) as error:
        return _fail(str(error), EXIT_UNAVAILABLE)
    return 0


def upgrade_database(url: str) -> int:
    """Brings the database at `url` to the tables of this version and prints its revision."""
    try:
        revision = upgrade(url)
    except PeakgateError as error:
        return _fail(str(error), EXIT_UNAVAILABLE)
    sys.stdout.write(f"database at revision {revision}\n")
    return 0


def _announce(addresses: Addresses) -> None:
    sys.stdout.write(f"peakgate serves gRPC on {addresses.grpc} and HTTP on {addresses.http}\n")
    sys.stdout.flush()


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"peakgate: {message}\n")
    return status
