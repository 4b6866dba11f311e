"""Runs the webhook until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from peakgate.hooks.advising import Advisers
from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.beside import Beside
from peakgate.hooks.kubernetes.catalogue import catalogue_of
from peakgate.hooks.kubernetes.certificates import CertificateError, LiveCertificate
from peakgate.hooks.kubernetes.inventory import Inventory
from peakgate.hooks.kubernetes.judging import Jury
from peakgate.hooks.kubernetes.listener import listening
from peakgate.hooks.kubernetes.metrics import Watched, WebhookMetrics
from peakgate.hooks.kubernetes.own_certificates import FolderStore, OwnCertificates, Store, StoreError
from peakgate.hooks.kubernetes.readiness import Link, Readiness
from peakgate.hooks.kubernetes.review import Cluster, NoCluster, Reviewer
from peakgate.hooks.kubernetes.routes import MUTATE, VALIDATE, probes, reviews
from peakgate.hooks.kubernetes.rules import Mode, Rules, RulesError, read_rules
from peakgate.hooks.kubernetes.warming import warm
from peakgate.hooks.live_file import LiveFile
from peakgate.v1.callers import KUBERNETES

BAD_USAGE = 2
ENDING = (signal.SIGTERM, signal.SIGINT)
CONNECT_SECONDS = 2.0
SERVICE_SECONDS = 0.8
"""For the service's verdict; what makes the job fit is looked for in what is left of the deadline."""

ADVICE_SECONDS = 0.4
READERS = 4
"""Threads that read objects: one whose object takes long holds up nobody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """`certificates`: the folder with tls.crt and tls.key. `own_hosts`: make them ourselves, for these names; kept in the Secret
    `secret` (namespace/name), else in the folder. `configuration`: whose caBundle is then kept right. `config`: the file of modes."""

    host: str = "0.0.0.0"  # noqa: S104 - in a pod every address is the pod's
    port: int = 9443
    metrics_port: int | None = None
    server: str = ""
    certificates: Path | None = None
    own_hosts: tuple[str, ...] = ()
    secret: str = ""
    configuration: str = ""
    config: Path | None = None
    mode: Mode = Mode.warn
    reads_cluster: bool = False
    lists_nodes: bool = False
    nodes_may_join: bool = True
    beside: bool = True


def run_webhook(options: WebhookOptions) -> int:
    """The exit status: 0 told to stop, 2 something that was asked for cannot be had."""
    try:
        asyncio.run(_run(options))
    except (RulesError, CertificateError, StoreError, _UsageError) as error:
        tell("error", str(error))
        return BAD_USAGE
    except OSError as error:
        tell("error", f"cannot listen: {error}")
        return BAD_USAGE
    return 0


class _UsageError(Exception):
    """Options that do not go together, or packages that are missing."""


def tell(level: str, text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"{level}: {text}\n")
    sys.stderr.flush()


async def _run(options: WebhookOptions) -> None:
    metrics, beside = WebhookMetrics(), Beside(tell)
    rules = _rules(options)
    service = Service(options.server, caller=KUBERNETES) if options.server else None
    link = Link(channel=service.channel) if service is not None else None
    judges = Judges(service=service, beside=lambda: beside.service, deadline_seconds=SERVICE_SECONDS)
    advisers = Advisers(judges=judges, wait_seconds=ADVICE_SECONDS)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(READERS, "reader") as readers, ThreadPoolExecutor(READERS) as calls:
        own = await asyncio.to_thread(_own_certificates, options, Path(scratch))
        folder = own.folder if own is not None else options.certificates
        if folder is None:
            raise _UsageError("no certificate: name a folder with --cert-dir, or have one made with --self-signed")
        certificate = LiveCertificate(folder=folder, tell=tell, on_reload=lambda outcome: metrics.reloads.labels(outcome).inc())
        inventory = _inventory(options, lambda: catalogue_of(service or beside.service))
        reviewer = Reviewer(
            rules=rules, jury=Jury(judges=judges, advisers=advisers), metrics=metrics, tell=tell, executor=readers,
            cluster=_cluster(options, calls), facts=lambda: inventory.facts,
        )  # fmt: skip
        metrics.watch(
            Watched(
                certificate_expiry_seconds=lambda: certificate.expiry_seconds,
                is_config_stale=lambda: int(isinstance(rules, _LiveRules) and rules.file.is_stale),
                is_service_up=lambda: int(link is not None and link.is_up and not judges.breaker.is_open),
                is_beside_ready=lambda: int(beside.service is not None),
            )
        )
        try:
            async with (
                _beside(beside, wanted=options.beside),
                _running(
                    certificate.watch,
                    inventory.watch,
                    *((own.keep,) if own is not None else ()),
                    *((link.watch,) if link is not None else ()),
                ),
            ):
                await asyncio.to_thread(warm)
                await _connect(service)
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
        await _told_to_stop()


@dataclass(frozen=True, slots=True)
class _LiveRules:
    file: LiveFile[Rules]

    def __call__(self) -> Rules:
        return self.file.current()


def _rules(options: WebhookOptions) -> Callable[[], Rules]:
    if options.config is None:
        stated = Rules(mode=options.mode)
        return lambda: stated
    return _LiveRules(LiveFile(options.config, read_rules, tell, fault=RulesError))


def _cluster(options: WebhookOptions, calls: ThreadPoolExecutor) -> Cluster:
    if not options.reads_cluster:
        return NoCluster()
    from peakgate.hooks.kubernetes.cluster import ApiCluster
    from peakgate.hooks.kubernetes.kubernetes_api import KubernetesApi, NoClusterError, connected

    try:
        return ApiCluster(api=KubernetesApi(connected()), executor=calls, tell=tell)
    except NoClusterError as error:
        raise _UsageError(f"--read-cluster: {error}") from error


def _inventory(options: WebhookOptions, catalogue: Callable[[], Awaitable[Mapping[str, int]]]) -> Inventory:
    nodes = None
    if options.lists_nodes:
        from peakgate.hooks.kubernetes.kubernetes_api import KubernetesApi, NoClusterError, connected

        try:
            nodes = KubernetesApi(connected())
        except NoClusterError as error:
            raise _UsageError(f"--nodes: {error}") from error
    return Inventory(nodes=nodes, may_join=options.nodes_may_join, catalogue=catalogue, tell=tell)


def _own_certificates(options: WebhookOptions, scratch: Path) -> OwnCertificates | None:
    """Made and announced before anybody listens; None where others make them."""
    if not options.own_hosts:
        return None
    folder = options.certificates if options.certificates is not None and not options.secret else scratch / "tls"
    store: Store = FolderStore(folder)
    announce: Callable[[bytes], bool] = lambda _: True  # noqa: E731 - a default beside the other
    if options.secret or options.configuration:
        from peakgate.hooks.kubernetes.kubernetes_api import NoClusterError, SecretStore, WebhookConfigurations, connected

        try:
            calls = connected()
        except NoClusterError as error:
            raise _UsageError(f"--cert-secret: {error}") from error
        if options.secret:
            namespace, _, name = options.secret.partition("/")
            store = SecretStore(calls, namespace, name)
        if options.configuration:
            announce = WebhookConfigurations(calls, options.configuration).announce
    own = OwnCertificates(store=store, folder=folder, hosts=options.own_hosts, tell=tell, announce=announce)
    own.begin()
    return own


@asynccontextmanager
async def _beside(beside: Beside, *, wanted: bool) -> AsyncIterator[None]:
    async with beside.running() if wanted else contextlib.nullcontext():
        yield


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


async def _connect(service: Service | None) -> None:
    """The first review finds a channel that is open already; a service that is away is found later."""
    if service is not None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(service.channel.channel_ready(), CONNECT_SECONDS)


async def _told_to_stop() -> None:
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in ENDING:
        loop.add_signal_handler(number, told.set)
    await told.wait()
