"""Takes stock of the cluster that this host belongs to: asks Slurm for its nodes and the service for what agents saw in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peakgate.client.errors import InputError, PeakgateError
from peakgate.hooks.slurm.card_file import table_text, write_table
from peakgate.hooks.slurm.card_table import CardTable, TableError, read_table
from peakgate.hooks.slurm.inventory import Found, inventory
from peakgate.hooks.slurm.learned import Seen, seen_in
from peakgate.hooks.slurm.nodes import default_partition, nodes_of
from peakgate.hooks.slurm.scontrol import ScontrolError, scontrol, settings_of, unavailable


@dataclass(frozen=True, slots=True)
class Stock:
    """What there is, and the table as it stands."""

    found: Sequence[Found]
    own: CardTable
    cluster: str
    default_partition: str

    def write(self, path: Path) -> None:
        """Renews the table. Raises InputError."""
        with told():
            write_table(path, table_text(self.found, own=self.own, cluster=self.cluster, default_partition=self.default_partition))


def take_stock(cards: Path, server: str | None, db: str | None, on_away: Callable[[str], None]) -> Stock:
    """Asks Slurm and the service; one that is away is told to `on_away`, and the stock taken without it. Raises InputError."""
    with told():
        nodes = list(nodes_of(scontrol("show", "node", "-o")))
        partition = default_partition(scontrol("show", "partition", "-o"))
        cluster = settings_of(scontrol("show", "config")).get("ClusterName", "")
        own = read_table(cards) if cards.exists() else CardTable()
    try:
        seen, catalogue = seen_by_agents(server, db, cluster)
    except PeakgateError as error:
        on_away(error.message)
        seen, catalogue = (), {}
    return Stock(inventory(nodes, seen=seen, own=own, catalogue=catalogue), own, cluster, partition)


def seen_by_agents(server: str | None, db: str | None, cluster: str) -> tuple[Sequence[Seen], Mapping[str, int]]:
    """What agents of a cluster saw, and the catalogue's bytes by a card's name. Raises PeakgateError."""
    from peakgate.client.connect import open_client  # gRPC, which a broken request never needs

    with open_client(server, db) as client:
        seen = seen_in(cluster, client.list_cards())
        sizes = {gpu.name: gpu.total_bytes for gpu in client.list_gpus().gpus}
    return seen, sizes


@contextmanager
def told() -> Iterator[None]:
    """What Slurm or a file refuses, as an error of the command."""
    try:
        yield
    except ScontrolError as error:
        raise unavailable(error) from error
    except TableError as error:
        raise InputError(str(error), reason="CARDS_INVALID") from error
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", reason="FILE_UNWRITABLE") from error
