"""Real services: in this process on a free port, or as a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from tests.databases import KINDS, Database, NewDatabase, sqlite_in
from tests.postgres import Cluster

from peakgate.server.core import Core
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.learning import LearningRules
from peakgate.server.logs import QuietLogger
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.policy import Policy
from peakgate.server.requests import SeenRequests
from peakgate.server.store.sql import SqlStore, open_store
from peakgate.v1.calibration_service_pb2_grpc import CalibrationServiceStub
from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceStub
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

ANNOUNCEMENT = re.compile(r"gRPC on (\S+) and HTTP on (\S+)")


@dataclass(frozen=True, slots=True)
class Service:
    """A running service and its stubs."""

    core: Core
    metrics: PrometheusMetrics
    target: str
    predictions: PredictionServiceStub
    telemetry: TelemetryServiceStub
    calibration: CalibrationServiceStub
    catalog: CatalogServiceStub


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a client reads of an error."""

    code: grpc.StatusCode
    reason: str
    domain: str
    fields: dict[str, str]


StartService = Callable[..., AbstractAsyncContextManager[Service]]


@contextmanager
def _on_postgresql(server: Cluster, door: Cluster | None = None) -> Iterator[NewDatabase]:
    """Databases of a server, reached through `door` where there is one before it."""
    made: dict[str, Database] = {}
    names: list[str] = []

    def new(name: str) -> Database:
        if name not in made:
            names.append(server.new_database())
            made[name] = Database((door or server).url(names[-1]))
        return made[name]

    yield new
    for name in names:
        server.give_back(name)


@pytest.fixture(params=KINDS)
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewDatabase]:
    """Makes empty databases of one kind: every test that asks for it runs on each kind, and on "pgbouncer" where it says so."""
    if request.param == "sqlite":
        yield sqlite_in(tmp_path)
        return
    door = request.getfixturevalue("pgbouncer") if request.param == "pgbouncer" else None
    with _on_postgresql(request.getfixturevalue("postgres_server"), door) as new:
        yield new


@pytest.fixture
def database(new_database: NewDatabase) -> Database:
    """The test's own database."""
    return new_database("store")


@pytest.fixture
def store(database: Database) -> Iterator[SqlStore]:
    """A store on a new database."""
    opened = open_store(database.url)
    yield opened
    opened.close()


@asynccontextmanager
async def _start(database: Database, *, memory: MemoryModel | None = None, promotes: bool = True) -> AsyncIterator[Service]:
    store = open_store(database.url)
    metrics = PrometheusMetrics()
    seen = SeenRequests(store.request_ids())
    model = memory if memory is not None else memory_model()
    core = Core(model, store, policy=Policy(), metrics=metrics, log=QuietLogger(), seen=seen, learning=LearningRules(promotes=promotes))
    server = core.build_server()
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await core.start()
    await server.start()
    async with grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield Service(
            core,
            metrics,
            target,
            PredictionServiceStub(channel),
            TelemetryServiceStub(channel),
            CalibrationServiceStub(channel),
            CatalogServiceStub(channel),
        )
    await server.stop(1)
    await core.stop(5)


@pytest.fixture
def start_service(database: Database) -> StartService:
    """Starts a service on the test's own database; several share it."""
    return lambda **how: _start(database, **how)


@pytest.fixture
async def service(start_service: StartService) -> AsyncIterator[Service]:
    """One service."""
    async with start_service() as running:
        yield running


@pytest.fixture
def a_job() -> Callable[..., TrainingJob]:
    """The textbook's 1.3B job: 116.1 GB with eager attention, 51.7 GB with flash."""

    def build(*, attention: str = "flash", gpu: str = "h100-80gb", micro_batch_size: int = 8, framework: str = "textbook") -> TrainingJob:
        job = TrainingJob(name="textbook 1.3B")
        transformer = job.model.transformer
        transformer.block = "gpt"
        transformer.layers, transformer.hidden_size, transformer.heads = 24, 2048, 16
        transformer.ffn_hidden_size, transformer.vocab_size, transformer.tied_embeddings = 8192, 50257, True
        job.batch.micro_batch_size, job.batch.sequence_length = micro_batch_size, 2048
        job.dropout.attention = job.dropout.hidden = 0.1
        job.attention.implementation = attention
        job.framework.name = framework
        if gpu:
            job.gpu.type = gpu
        return job

    return build


def refusal_of(error: grpc.RpcError) -> Refusal:
    """Code, reason and fields of an error."""
    status = rpc_status.from_call(error)
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    if status is not None:
        for detail in status.details:
            detail.Unpack(info) if detail.Is(info.DESCRIPTOR) else detail.Unpack(bad)
    return Refusal(error.code(), info.reason, info.domain, {each.field: each.description for each in bad.field_violations})


@pytest.fixture
def refusal() -> Callable[[grpc.RpcError], Refusal]:
    """Reads an error's details."""
    return refusal_of


@dataclass(frozen=True, slots=True)
class Process:
    """A service that runs as a process."""

    process: subprocess.Popen[str]
    grpc: str
    http: str


@contextmanager
def _run(database: Database) -> Iterator[Process]:
    arguments = f"grpc_port=0, http_port=0, database_url={database.url!r}"
    code = f"from peakgate.server.main import run_server; raise SystemExit(run_server({arguments}))"
    environment = os.environ | {"PEAKGATE_QUIET_SECONDS": "0"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        found = ANNOUNCEMENT.search(process.stdout.readline())
        assert found, process.stderr.read()
        yield Process(process, found[1], found[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def run_service(database: Database) -> Callable[[], AbstractContextManager[Process]]:
    """Starts a service as a process on the test's own database."""
    return lambda: _run(database)


@pytest.fixture(scope="module", params=KINDS)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A service as a process, which the tests of a module share."""
    if request.param == "sqlite":
        with _run(sqlite_in(tmp_path_factory.mktemp("service"))("store")) as process:
            yield process
        return
    with _on_postgresql(request.getfixturevalue("postgres_server")) as new, _run(new("store")) as process:
        yield process
