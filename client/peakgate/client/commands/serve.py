"""`peakgate serve`: the service."""

from __future__ import annotations

from typing import Annotated

import typer

from peakgate.client.extras import extra

Host = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen. Default: PEAKGATE_HOST, else 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(metavar="PORT", help="Port of gRPC; 0: a free one. Default: PEAKGATE_GRPC_PORT, else 50551.")]
HttpPort = Annotated[int | None, typer.Option(metavar="PORT", help="Port of HTTP. Default: PEAKGATE_HTTP_PORT, else 9551.")]
ServeDatabase = Annotated[
    str | None, typer.Option("--db", metavar="URL", help="Database. Default: PEAKGATE_DATABASE_URL, else SQLite in the user's data folder.")
]


def serve(*, host: Host = None, port: Port = None, http_port: HttpPort = None, db: ServeDatabase = None) -> None:
    """Runs the service until it is told to stop (SIGTERM or Ctrl-C)."""
    with extra("server"):
        from peakgate.server.main import run_server
    raise typer.Exit(run_server(host=host, grpc_port=port, http_port=http_port, database_url=db))
