"""Runs the gate until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peakgate.client.slurm_defaults import SERVICE_SECONDS
from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.beside import Beside
from peakgate.hooks.live_file import LiveFile
from peakgate.hooks.program import BAD_USAGE, connect, tell, told_to_stop
from peakgate.hooks.rules_file import RulesError, read_rules
from peakgate.hooks.slurm.card_table import CardTable, TableError, read_table
from peakgate.hooks.slurm.cards import Cards
from peakgate.hooks.slurm.finding import Finder
from peakgate.hooks.slurm.gate import Gate
from peakgate.hooks.slurm.gate_metrics import GateMetrics, Watched, served
from peakgate.hooks.slurm.journal import Journal
from peakgate.hooks.slurm.peers import Peers, SocketError, allowed_users, listen
from peakgate.hooks.slurm.rules import Rules

LAST_ANSWERS_SECONDS = 0.5
"""For requests that are under way when the gate is told to stop: longer than any of them takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """`server`: the service's target; empty: none, and only the one beside judges. `is_rules_needed`: whether a missing file is a fault;
    else every job is in shadow while there is none, and cards are known by their names. `journal`: None for none."""

    socket: Path
    server: str = ""
    rules: Path
    cards: Path
    is_rules_needed: bool = False
    journal: Path | None = None
    metrics_port: int | None = None
    allow_users: tuple[str, ...] = ()
    cluster: str = ""
    beside: bool = True
    deadline_seconds: float = SERVICE_SECONDS


def run_gate(options: GateOptions) -> int:
    """The exit status: 0 told to stop, 2 something that was asked for cannot be had."""
    try:
        asyncio.run(_run(options))
    except (RulesError, TableError, SocketError) as error:
        tell("error", str(error))
        return BAD_USAGE
    except OSError as error:
        tell("error", f"no metrics on port {options.metrics_port}: {error}")
        return BAD_USAGE
    return 0


async def _run(options: GateOptions) -> None:
    metrics = GateMetrics()
    rules = LiveFile(
        options.rules, partial(read_rules, model=Rules), tell, fault=RulesError, without=None if options.is_rules_needed else Rules()
    )
    cards = LiveFile(options.cards, read_table, tell, fault=TableError, without=CardTable())
    operators, journal, beside = allowed_users(options.allow_users), Journal(options.journal, tell), Beside(tell)
    service = Service(options.server) if options.server else None
    judges = Judges(
        service=service,
        beside=lambda: beside.service,
        deadline_seconds=options.deadline_seconds,
        on_away=lambda code: metrics.away.labels(code).inc(),
    )
    advisers = Advisers(judges=judges)
    finder = Finder(judges=judges, tell=tell)
    gate = Gate(
        rules=rules.current, cards=lambda: Cards(table=cards.current()), judges=judges, advisers=advisers, finder=finder, journal=journal,
        metrics=metrics, tell=tell, operators=operators, cluster=options.cluster,
    )  # fmt: skip
    metrics.watch(
        Watched(
            is_breaker_open=lambda: judges.breaker.is_open,
            is_beside_ready=lambda: beside.service is not None,
            are_files_stale=lambda: rules.is_stale or cards.is_stale,
            journal_lost=lambda: journal.lost,
        )
    )
    peers = Peers(answer=gate.answer, allowed=operators, refuse=lambda reason: metrics.refused.labels(reason).inc())
    try:
        async with beside.running() if options.beside else contextlib.nullcontext(), _listening(options.socket, peers):
            with served(metrics, options.metrics_port) as port:
                await connect(service)
                tell("info", f"listening at {options.socket}" + (f", metrics on port {port}" if port else ""))
                await told_to_stop()
    finally:
        await advisers.close()
        finder.close()
        journal.close()
        if service is not None:
            await service.channel.close()


@contextlib.asynccontextmanager
async def _listening(path: Path, peers: Peers) -> AsyncIterator[None]:
    """No new request at the end, and those under way get their answers."""
    server = await listen(path, peers)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - nobody is served any more
        await peers.finish(LAST_ANSWERS_SECONDS)
