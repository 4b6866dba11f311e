"""`peakgate slurm inventory` on a live cluster, with and without a service that agents reported to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.bench.programs import PEAKGATE
from tests.integration.slurm.cluster import Done, Slurm

from peakgate.client.connect import connect
from peakgate.hooks.slurm.card_table import read_table
from peakgate.hooks.slurm.cards import Cards
from peakgate.hooks.slurm.submission import submission_of
from peakgate.server.embedded import open_embedded
from peakgate.v1 import telemetry_service_pb2 as pb

H100, A100_80, KRAKEN = 85_520_809_984, 85_899_345_920, 18_253_611_008
Command = Callable[..., Done]


@pytest.fixture
def command(slurm: Slurm) -> Command:
    """`peakgate slurm …` as the administrator."""

    def run(*words: str | Path, **env: str) -> Done:
        settings = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")} | env
        return slurm.run(PEAKGATE, "slurm", *words, user="root", env=settings)

    return run


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service listens to which agents have reported cards of three nodes, one of them not what its type says."""
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'service.sqlite3'}"
    with open_embedded(url) as target, connect(target) as client:
        for node, name, total in (
            ("h100n1.example.org", "NVIDIA H100 80GB HBM3", H100),
            ("a100n1", "NVIDIA A100-SXM4-80GB", A100_80),
            ("a100n1", "NVIDIA A100-SXM4-80GB", A100_80),
            ("oddn1", "Kraken", KRAKEN),
        ):
            peak = pb.PeakSample(node=node, gpu_uuid="GPU-5d5ba0d6", gpu_name=name, gpu_total_bytes=total, job="7", peak_bytes=1e9)
            info = pb.NodeInfo(cluster="testcluster", node=node, boot_id="b")
            assert client.report_peaks(pb.ReportPeaksRequest(node=info, peaks=[peak])).stored == 1
        yield target


def rows_of(done: Done) -> dict[tuple[str, str], dict[str, object]]:
    """By type and nodes."""
    return {(row["type"], row["nodes"]): row for row in map(json.loads, done.stdout.splitlines())}


def test_without_a_service_names_are_all_there_is(command: Command) -> None:
    """Types that name a card are known; slices, cards without a type and strange types are marked, and the status says so."""
    done = command("inventory", "--output=jsonl")
    rows = rows_of(done)
    assert done.returncode == 1, done.stderr
    assert {kind: row["gpu"] for kind, row in rows.items() if not row["is_bad"]} == {
        ("h100", "h100n[1-2]"): "h100-80gb",
        ("a100-40", "a100n1"): "a100-40gb",
        ("a100-80", "a100n1"): "a100-80gb",
    }
    assert {kind for kind, row in rows.items() if row["is_bad"]} == {
        ("", "oldn1"),
        ("1g.10gb", "mign1"),
        ("3g.40gb", "mign1"),
        ("kraken", "oddn1"),
    }
    assert rows["h100", "h100n[1-2]"]["features"] == ["hopper", "gpu80g"]
    assert rows["a100-40", "a100n1"]["partitions"] == ["a100", "any"]


def test_with_a_service_memory_is_learned(command: Command, service: str) -> None:
    """By node and type, the strange type too; what agents saw in the mixed node is of the type of its size."""
    rows = rows_of(command("inventory", "--output=jsonl", f"--server={service}"))
    assert rows["h100", "h100n1"]["memory_bytes"] == H100
    assert (rows["h100", "h100n2"]["gpu"], rows["h100", "h100n2"]["source"]) == ("h100-80gb", "catalogue")
    assert (rows["a100-80", "a100n1"]["memory_bytes"], rows["a100-40", "a100n1"]["memory_bytes"]) == (A100_80, 0)
    assert (rows["kraken", "oddn1"]["memory_bytes"], rows["kraken", "oddn1"]["source"]) == (KRAKEN, "agents")


def test_the_table_is_written_kept_and_used(command: Command, slurm: Slurm, service: str) -> None:
    """What a person states stays, what agents see against it is said, and submissions are judged by it."""
    path = slurm.folder / "cards.yaml"
    path.write_text(
        f"untyped: best\ncards:\n- {{type: kraken, memory_bytes: {2 * KRAKEN}}}\n- {{type: '', nodes: oldn1, gpu: v100-32gb}}\n"
    )
    done = command("inventory", "--write", "--cards", path, "--output=jsonl", f"--server={service}")
    remark = str(rows_of(done)["kraken", "oddn1"]["remark"])
    assert remark == "agents report 17.0 GiB (Kraken) in oddn1, the table says 34.0 GiB"
    table = read_table(path)
    assert (table.cluster, table.default_partition, table.untyped.value) == ("testcluster", "h100", "best")
    cards = Cards(table=table)

    def label(**fields: object) -> tuple[str, int] | str:
        choice = cards.choose(submission_of({"tres_per_node": "gres:gpu:1", **fields}))
        return (choice.card.name, choice.card.memory_bytes) if choice.card else choice.doubt

    assert label() == ("h100-80gb", H100)
    assert label(partition="a100") == ("a100-80gb", A100_80)
    assert label(req_nodes="oldn1", partition="rest") == ("v100-32gb", 0)
    assert label(req_nodes="oddn1", partition="rest") == ("", 2 * KRAKEN)
    assert "1g.10gb" in str(label(req_nodes="mign1", partition="rest"))


def test_people_see_a_table(command: Command) -> None:
    """With what to do beside what is not known; an away service is said and no reason to show nothing."""
    done = command("inventory", "--server=127.0.0.1:9")
    assert "agents were not asked" in done.stderr
    assert "kraken is no card that is known by its name: state gpu or memory_bytes" in " ".join(done.stdout.split())


def test_what_is_wrong_is_said(command: Command, tmp_path: Path) -> None:
    """Slurm that does not answer, and a table that is none."""
    broken = command("inventory", SLURM_CONF="/nonexistent/slurm.conf")
    assert (broken.returncode, "SLURM_UNAVAILABLE" in broken.stderr) == (2, True), broken.stderr
    path = tmp_path / "cards.yaml"
    path.write_text("cards: 7\n")
    done = command("inventory", "--cards", path)
    assert done.returncode == 2
    assert "cards is a list of rows" in done.stderr
