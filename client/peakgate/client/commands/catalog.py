"""`peakgate catalog`: what the service knows by name."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from peakgate.client.connect import Client


class Table(StrEnum):
    """Tables of the catalogue."""

    models = "models"
    gpus = "gpus"
    defaults = "defaults"


Which = Annotated[Table, typer.Argument(help="The table.")]


def catalog(*, table: Which, server: Server = None, db: Database = None, output: OutputForm = Output.table) -> None:
    """Shows the models, GPUs and framework defaults that a job may rely on, each with its source."""
    from peakgate.client.connect import open_client
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.catalog import print_rows
    from peakgate.v1.document import answer_to_dict

    with open_client(server, db) as client:
        rows = [answer_to_dict(each) for each in _rows(client, table)]
    if output is Output.table:
        print_rows(human_console(output), rows)
    else:
        write_all(rows, output)


def _rows(client: Client, table: Table) -> Sequence[Message]:
    match table:
        case Table.models:
            return client.list_models().models
        case Table.gpus:
            return client.list_gpus().gpus
        case Table.defaults:
            return client.list_defaults().defaults
