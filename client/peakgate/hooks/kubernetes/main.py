"""Runs the webhook until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.beside import Beside
from peakgate.hooks.kubernetes.assembling import certificate_of, cluster_of, inventory_of, own_certificates, rules_file
from peakgate.hooks.kubernetes.catalogue import catalogue_of
from peakgate.hooks.kubernetes.certificates import CertificateError, LiveCertificate
from peakgate.hooks.kubernetes.judging import Jury
from peakgate.hooks.kubernetes.listener import listening
from peakgate.hooks.kubernetes.metrics import Watched, WebhookMetrics
from peakgate.hooks.kubernetes.options import UsageError, WebhookOptions
from peakgate.hooks.kubernetes.own_certificates import StoreError
from peakgate.hooks.kubernetes.readiness import Link, Readiness
from peakgate.hooks.kubernetes.review import Reviewer
from peakgate.hooks.kubernetes.routes import MUTATE, VALIDATE, probes, reviews
from peakgate.hooks.kubernetes.rules import Rules
from peakgate.hooks.kubernetes.warming import warm
from peakgate.hooks.program import BAD_USAGE, connect, tell, told_to_stop
from peakgate.hooks.rules_file import RulesError
from peakgate.v1.callers import KUBERNETES

SERVICE_SECONDS = 0.8
"""For the service's verdict; what makes the job fit is looked for in what is left of the deadline."""

ADVICE_SECONDS = 0.4
READERS = 4
"""Threads that read objects: one whose object takes long holds up nobody else."""


def run_webhook(options: WebhookOptions) -> int:
    """The exit status: 0 told to stop, 2 something that was asked for cannot be had."""
    try:
        asyncio.run(_run(options))
    except (RulesError, CertificateError, StoreError, UsageError) as error:
        tell("error", str(error))
        return BAD_USAGE
    except OSError as error:
        tell("error", f"cannot listen: {error}")
        return BAD_USAGE
    return 0


async def _run(options: WebhookOptions) -> None:
    metrics, beside, live, stated = WebhookMetrics(), Beside(tell), rules_file(options), Rules(mode=options.mode)
    service = Service(options.server, caller=KUBERNETES) if options.server else None
    link = Link(channel=service.channel, tell=tell) if service is not None else None
    judges = Judges(service=service, beside=lambda: beside.service, deadline_seconds=SERVICE_SECONDS)
    advisers = Advisers(judges=judges, wait_seconds=ADVICE_SECONDS)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(READERS, "reader") as readers, ThreadPoolExecutor(READERS) as calls:
        own = await asyncio.to_thread(own_certificates, options, Path(scratch))
        certificate = certificate_of(options, own, metrics)
        inventory = inventory_of(options, lambda: catalogue_of(service, beside.service))
        reviewer = Reviewer(
            rules=live.current if live is not None else lambda: stated, jury=Jury(judges=judges, advisers=advisers), metrics=metrics,
            tell=tell, executor=readers, cluster=cluster_of(options, calls), facts=lambda: inventory.facts,
        )  # fmt: skip
        metrics.watch(
            Watched(
                certificate_expiry_seconds=lambda: certificate.expiry_seconds,
                is_config_stale=lambda: int(live is not None and live.is_stale),
                is_service_up=lambda: int(link is not None and link.is_up and not judges.breaker.is_open),
                is_beside_ready=lambda: int(beside.service is not None),
            )
        )
        watches = [certificate.watch, inventory.watch, inventory.watch_catalogue]
        watches += [own.keep] if own is not None else []
        watches += [link.watch] if link is not None else []
        try:
            async with beside.running() if options.beside else contextlib.nullcontext(), _running(*watches):
                await asyncio.to_thread(warm)
                await connect(service)
                readiness = Readiness(can_judge=lambda: beside.service is not None or (link is not None and link.was_up))
                await _serve(options, reviewer, metrics, certificate, readiness.reason)
        finally:
            await advisers.close()
            if service is not None:
                await service.channel.close()


async def _serve(
    options: WebhookOptions, reviewer: Reviewer, metrics: WebhookMetrics, certificate: LiveCertificate, unready: Callable[[], str]
) -> None:
    paths = {VALIDATE: reviewer.validate, MUTATE: reviewer.mutate}
    own, open_to_all = probes(metrics, unready, has_metrics=False), probes(metrics, unready)

    def refused(reason: str) -> None:
        metrics.refused.labels(reason).inc()

    async with contextlib.AsyncExitStack() as stack:
        handle = reviews(paths, metrics, own)
        ports = await stack.enter_async_context(listening(options.host, options.port, handle, refused, tls=certificate.context))
        plain = ""
        if options.metrics_port is not None:
            found = await stack.enter_async_context(listening(options.host, options.metrics_port, open_to_all, refused))
            plain = f", metrics on port {found[0]}"
        tell("info", f"listening on port {ports[0]}{plain}")
        await told_to_stop()


@asynccontextmanager
async def _running(*tasks: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    """What runs beside the reviews while the block does."""
    started = [asyncio.create_task(each()) for each in tasks]
    try:
        yield
    finally:
        for task in started:
            task.cancel()
        await asyncio.gather(*started, return_exceptions=True)
