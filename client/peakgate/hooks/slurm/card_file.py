"""The table of cards written down: what a person stated on top and as it stands, then what was found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from peakgate.hooks.slurm.card_table import CardTable, Row
from peakgate.hooks.slurm.inventory import Found

HEADER = """\
# GPU cards of this cluster, written by `peakgate slurm inventory`. The first row that holds for a request's type and place counts.
# To state a card's memory give a row `gpu` (a name of `peakgate catalog gpus`) or `memory_bytes`, and `source: admin`; such rows stay.
# untyped: the card on which a request is judged that may get several: best (the largest; who may get one that is too small is told so),
# worst (the least, so that a job is refused which would fit another), or pin (the least one on which it fits; the job is then changed to
# ask for that type).
"""


def table_text(found: Sequence[Found], *, own: CardTable, cluster: str, default_partition: str) -> str:
    """The file's text."""
    top = {"cluster": cluster or own.cluster, "default_partition": default_partition, "untyped": own.untyped.value}
    stated = [row for row in own.cards if row.is_stated]
    places = {(row.type, row.nodes) for row in stated}
    parts = [HEADER, yaml.safe_dump(top, sort_keys=False), "cards:\n", *(_text(row) for row in stated)]
    for each in found:
        if (each.row.type, each.row.nodes) not in places:
            parts += [f"# {each.remark}\n"] if each.remark else []
            parts.append(_text(each.row))
    return "".join(parts)


def _text(row: Row) -> str:
    told = {
        "type": row.type,
        "nodes": row.nodes,
        "partitions": list(row.partitions),
        "features": list(row.features),
        "count": row.count,
        "gpu": row.gpu,
        "memory_bytes": row.memory_bytes,
        "source": row.source,
    }
    kept = {name: value for name, value in told.items() if value or name == "type"}
    return yaml.safe_dump([kept], sort_keys=False, width=1000, default_flow_style=None)


def write_table(path: Path, text: str) -> None:
    """Replaces the file as a whole, so that a gate that reads it meanwhile sees the old or the new one; its mode stays."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
    os.replace(beside, path)  # noqa: PTH105 - the same
