"""The cards of a cluster as a table, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.client.options import Output
from peakgate.client.output import human_console, write_all
from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb_and_gib
from peakgate.hooks.slurm.inventory import Found
from peakgate.v1.plain import Plain

COLUMNS = ("type", "nodes", "count", "partitions", "features", "GPU", "memory", "source", "remark")


def print_inventory(found: Sequence[Found], output: Output) -> None:
    """A row for the cards of one type in like nodes."""
    if output is not Output.table:
        write_all([_as_dict(each) for each in found], output)
        return
    console = human_console(output)
    if not found:
        console.print("The cluster has no node with a GPU in its Gres.")
        return
    table = plain_table()
    for name in COLUMNS:
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*map(escape, _cells(each)), style="bold red" if each.is_bad else "yellow" if each.remark else None)
    console.print(table)


def _cells(found: Found) -> tuple[str, ...]:
    row = found.row
    memory = gb_and_gib(row.memory_bytes) if row.memory_bytes else "by name" if row.gpu else "not known"
    where = (",".join(row.partitions), ",".join(row.features))
    return (row.type or "(none)", row.nodes, str(row.count), *where, row.gpu, memory, row.source, found.remark)


def _as_dict(found: Found) -> dict[str, Plain]:
    row = found.row
    return {
        "type": row.type,
        "nodes": row.nodes,
        "count": row.count,
        "partitions": list(row.partitions),
        "features": list(row.features),
        "gpu": row.gpu,
        "memory_bytes": row.memory_bytes,
        "source": row.source,
        "remark": found.remark,
        "is_bad": found.is_bad,
    }
