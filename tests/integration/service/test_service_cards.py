"""The service tells what cards the nodes have, as their agents saw them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.client.connect import connect
from peakgate.v1 import telemetry_service_pb2 as pb

UUID = "GPU-5d5ba0d6"
LARGE, SMALL, SLICE = 85_520_809_984, 42_949_672_960, 10_468_982_784


async def report(service: Any, cluster: str, node: str, *cards: tuple[str, str, int], second: int = 100) -> None:
    """Peaks of a job on cards (id, name, memory)."""
    seen = Timestamp(seconds=second)
    usual = pb.PeakSample(node=node, job="7", source="sampled", peak_bytes=1e9, first_time=seen, last_time=seen, peak_time=seen)
    peaks = []
    for uuid, name, total in cards:
        usual.gpu_uuid, usual.gpu_name, usual.gpu_total_bytes = f"{uuid}-5d5ba0d6", name, total
        peaks.append(pb.PeakSample.FromString(usual.SerializeToString()))
    info = pb.NodeInfo(cluster=cluster, node=node, boot_id="b")
    answer = await service.telemetry.ReportPeaks(pb.ReportPeaksRequest(node=info, peaks=peaks))
    assert not answer.refused


def told(card: pb.NodeCard) -> tuple[str, str, str, int, int, int]:
    """All of it."""
    return card.cluster, card.node, card.gpu_name, card.total_bytes, card.cards, card.seen_time.seconds


async def test_cards_are_listed_by_node_and_kind(service: Any) -> None:
    """Cards of one kind are counted, those of another are another row, and the last time is the newest."""
    await report(
        service, "c", "n2", ("GPU-0", "A100", SMALL), ("GPU-1", "A100", SMALL), ("GPU-2", "A100", LARGE), ("MIG-0", "A100 MIG", SLICE)
    )
    await report(service, "c", "n1", ("GPU-9", "H100", LARGE))
    await report(service, "c", "n1", ("GPU-9", "H100", LARGE), second=200)
    await report(service, "d", "n1", ("GPU-3", "H100", LARGE))
    await report(service, "c", "n3", ("GPU-4", "", 0))
    found = await service.telemetry.ListCards(pb.ListCardsRequest(cluster="c"))
    want = [
        ("c", "n1", "H100", LARGE, 1, 200),
        ("c", "n2", "A100", SMALL, 2, 100),
        ("c", "n2", "A100", LARGE, 1, 100),
        ("c", "n2", "A100 MIG", SLICE, 1, 100),
    ]
    assert [told(card) for card in found.cards] == want
    everywhere = await service.telemetry.ListCards(pb.ListCardsRequest())
    assert [told(card) for card in everywhere.cards] == [*want, ("d", "n1", "H100", LARGE, 1, 100)]


async def test_a_long_list_comes_in_pages(service: Any, refusal: Callable[[grpc.RpcError], Any]) -> None:
    """Each page begins behind the last one; a token of another list is refused."""
    for number in range(5):
        await report(service, "c", f"n{number}", ("GPU-0", "H100", LARGE))
    nodes, token = [], ""
    for _ in range(3):
        page = await service.telemetry.ListCards(pb.ListCardsRequest(cluster="c", page_size=2, page_token=token))
        nodes.append([card.node for card in page.cards])
        token = page.next_page_token
    assert (nodes, token) == ([["n0", "n1"], ["n2", "n3"], ["n4"]], "")
    first = await service.telemetry.ListCards(pb.ListCardsRequest(cluster="c", page_size=2))
    with pytest.raises(grpc.RpcError) as caught:
        await service.telemetry.ListCards(pb.ListCardsRequest(page_token=first.next_page_token))
    assert refusal(caught.value).reason == "PAGE_TOKEN_INVALID"


async def test_the_client_reads_all_pages(run_service: Any) -> None:
    """However many there are; a service that has seen none says so."""
    with run_service() as running, connect(running.grpc) as client:
        assert client.list_cards() == []
        node = pb.NodeInfo(cluster="c", node="n1", boot_id="b")
        for start in range(0, 1020, 255):
            peaks = [
                pb.PeakSample(node="n1", gpu_uuid=UUID, gpu_name=f"{number:04}", gpu_total_bytes=LARGE, job=f"{number}", peak_bytes=1e9)
                for number in range(start, start + 255)
            ]
            client.report_peaks(pb.ReportPeaksRequest(node=node, peaks=peaks))
        assert [card.gpu_name for card in client.list_cards(cluster="c")] == [f"{number:04}" for number in range(1020)]
