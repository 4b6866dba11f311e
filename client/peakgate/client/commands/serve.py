"""`peakgate serve`: the service."""

from __future__ import annotations

from typing import Annotated

import typer

from peakgate.client.extras import extra

Listen = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where gRPC listens; port 0 takes a free one. Default: 127.0.0.1:50551.")
]
HttpListen = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where HTTP listens. Default: 127.0.0.1:9551.")]
ServeDatabase = Annotated[
    str | None, typer.Option("--db", metavar="URL", help="Database. Default: PEAKGATE_DATABASE_URL, else SQLite in the user's data folder.")
]


def serve(*, listen: Listen = None, http: HttpListen = None, db: ServeDatabase = None) -> None:
    """Runs the service until it is told to stop (SIGTERM or Ctrl-C)."""
    with extra("server"):
        from peakgate.server.main import run_server
    raise typer.Exit(run_server(listen=listen, http=http, database_url=db))
