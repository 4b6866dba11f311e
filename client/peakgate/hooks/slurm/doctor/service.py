"""The service and the agents: whether it answers, whose clock is right, which nodes it has heard of, and what cards they have."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from peakgate.client.doctor.check import Check, State
from peakgate.client.errors import PeakgateError
from peakgate.hooks.slurm.card_table import CardTable, TableError, read_table
from peakgate.hooks.slurm.doctor.site import Site
from peakgate.hooks.slurm.inventory import inventory
from peakgate.hooks.slurm.learned import Seen, seen_in, short
from peakgate.hooks.slurm.nodes import Node, folded
from peakgate.v1.training_job_pb2 import TrainingJob

if TYPE_CHECKING:
    from peakgate.client.connect import Client
    from peakgate.v1.telemetry_service_pb2 import NodeCard

MOST_SKEW_SECONDS = 5.0
"""Attempts are joined by id, not by time, but their windows and the learning's waits are not longer than some minutes."""


def service_checks(site: Site, nodes: Sequence[Node]) -> Iterator[Check]:
    """Without a service only what the table and the names of types say is left to check."""
    from peakgate.client.connect import connect

    if not site.server:
        remedy = "name it with --server or PEAKGATE_SERVER: what agents saw, and learning, need it"
        yield Check(name="service", state=State.note, found="none was named; the gate judges by itself", remedy=remedy)
        yield cards(site, nodes, [])
        return
    with connect(site.server) as client:
        try:
            skew = _skew(client)
            known = client.list_cards()
            strange = strange_names(client, site)
        except PeakgateError as error:
            yield Check(name="service", state=State.bad, found=f"{site.server}: {error.message}", remedy="start `peakgate serve` there")
            yield cards(site, nodes, [])
            return
    yield Check(name="service", state=State.ok, found=f"{site.server} answers")
    yield clock(skew)
    mine = seen_in(site.cluster, known)
    yield cluster_name(site, nodes, known)
    yield agents(nodes, mine)
    if strange:
        told = f"{site.cards} names {', '.join(strange)}, which the service does not know: jobs there are not judged"
        yield Check(
            name="card names", state=State.bad, found=told, remedy="`peakgate catalog gpus` lists the names; or state memory_bytes alone"
        )
    yield cards(site, nodes, mine)


def strange_names(client: Client, site: Site) -> list[str]:
    """Names in the table of cards that the service takes for no card, neither by a name nor by another one for it."""
    try:
        own = read_table(site.cards) if site.cards.exists() else CardTable()
    except TableError:
        return []  # the check of the cards says so
    return [name for name in dict.fromkeys(row.gpu for row in own.cards if row.gpu) if not _is_card(client, name)]


def _is_card(client: Client, name: str) -> bool:
    """By the prediction of some job for it, which is not stored."""
    job = TrainingJob()
    job.model.preset, job.gpu.type = "gpt2", name
    try:
        client.predict(job, brief=True, validate_only=True)
    except PeakgateError as error:
        return error.reason != "ACCELERATOR_UNKNOWN"
    return True


def _skew(client: Client) -> float:
    """Seconds by which the service's clock is ahead of ours. An empty batch stores nothing, and is answered with the time."""
    from peakgate.v1.telemetry_service_pb2 import NodeInfo, ReportPeaksRequest

    before = time.time()
    answer = client.report_peaks(ReportPeaksRequest(node=NodeInfo(node="doctor")))
    return answer.server_time.ToNanoseconds() / 1e9 - (before + time.time()) / 2


def clock(skew_seconds: float) -> Check:
    """Of this host against the service's."""
    if abs(skew_seconds) <= MOST_SKEW_SECONDS:
        return Check(name="clock", state=State.ok, found=f"{abs(skew_seconds):.1f} s from the service's")
    told = f"the service's clock is {abs(skew_seconds):.0f} s {'ahead' if skew_seconds > 0 else 'behind'}"
    return Check(name="clock", state=State.bad, found=told, remedy="start chrony or systemd-timesyncd on both hosts")


def cluster_name(site: Site, nodes: Sequence[Node], known: Sequence[NodeCard]) -> Check:
    """Peaks find their job by cluster and job id, so agents must call the cluster as Slurm does."""
    ours = {short(name) for node in nodes for name in (node.name, node.host) if name}
    strange = sorted({card.cluster for card in known if short(card.node) in ours and card.cluster.lower() != site.cluster.lower()})
    if strange:
        told = f"agents on this cluster's nodes call it {', '.join(name or 'nothing' for name in strange)}, Slurm {site.cluster}"
        return Check(name="cluster", state=State.bad, found=told, remedy=f"start the agents with --cluster {site.cluster}")
    return Check(name="cluster", state=State.ok, found=site.cluster)


def agents(nodes: Sequence[Node], known: Sequence[Seen]) -> Check:
    """Nodes with GPUs on which no agent has seen a job yet."""
    heard = {short(card.node) for card in known}
    with_gpus = [node for node in nodes if node.gpus and not node.comes_and_goes]
    silent = [node.name for node in with_gpus if not {short(node.name), short(node.host)} & heard]
    if not silent:
        return Check(name="agents", state=State.ok, found=f"jobs were seen on all {len(with_gpus)} nodes with GPUs")
    remedy = "run `peakgate agent` there (systemctl enable --now peakgate-agent); a node where no job has run yet is silent too"
    return Check(
        name="agents", state=State.note, found=f"nothing was heard of {folded(silent)} ({len(silent)} of {len(with_gpus)})", remedy=remedy
    )


def cards(site: Site, nodes: Sequence[Node], seen: Sequence[Seen]) -> Check:
    """Whether the memory of every card is known, and undisputed."""
    try:
        own = read_table(site.cards) if site.cards.exists() else CardTable()
    except TableError as error:
        return Check(name="cards", state=State.bad, found=str(error), remedy="mend it, or write it anew: peakgate slurm inventory --write")
    if own.cluster and own.cluster.lower() != site.cluster.lower():
        told = f"{site.cards} is of cluster {own.cluster}, this one is {site.cluster}"
        return Check(name="cards", state=State.bad, found=told, remedy="write it here: peakgate slurm inventory --write")
    found = inventory(nodes, own=own, seen=seen)
    bad = [each for each in found if each.is_bad]
    remedy = f"state gpu or memory_bytes of these in {site.cards} (peakgate slurm inventory --write)"
    if bad:
        told = "; ".join(f"{each.row.type or '(no type)'} in {each.row.nodes}: {each.remark}" for each in bad[:3])
        return Check(name="cards", state=State.bad, found=told + (f"; and {len(bad) - 3} more" if len(bad) > 3 else ""), remedy=remedy)
    told = f"{len(found)} kinds of card, all known" if found else "no node has a GPU in its Gres"
    if not site.cards.exists() and found:
        return Check(name="cards", state=State.note, found=f"{told}; no table at {site.cards}", remedy="peakgate slurm inventory --write")
    return Check(
        name="cards", state=State.ok if found else State.bad, found=told, remedy="" if found else "state Gres= of the nodes in slurm.conf"
    )
