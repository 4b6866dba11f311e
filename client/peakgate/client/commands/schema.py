"""`peakgate schema`: the job document as JSON Schema."""

from __future__ import annotations

from peakgate.client.options import Database, Server


def schema(*, server: Server = None, db: Database = None) -> None:
    """Prints a JSON Schema of the job document, for an editor or a check of one's own."""
    from peakgate.client.connect import open_client
    from peakgate.client.output import write_line

    with open_client(server, db) as client:
        write_line(client.job_schema())
