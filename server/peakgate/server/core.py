"""The service's parts put together, without its doors: `app.py` opens ports to it, `embedded.py` a local channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress

import grpc

from peakgate.calibration import Calibrator
from peakgate.server.audit import AuditQueue
from peakgate.server.calibration_service import CalibrationService
from peakgate.server.catalog_service import CatalogService
from peakgate.server.clock import MICROSECONDS, Clock, now_us
from peakgate.server.distrust import Watch
from peakgate.server.errors import PeakgateError
from peakgate.server.follow import LOOK_SECONDS, Follower
from peakgate.server.interceptor import Guard
from peakgate.server.judge import Judge
from peakgate.server.learning import Learner, LearningRules
from peakgate.server.lease import RENEW_SECONDS, LeaseKeeper
from peakgate.server.limits import LARGEST_MESSAGE_BYTES
from peakgate.server.logs import Logger
from peakgate.server.memory import MemoryModel
from peakgate.server.metrics import Metrics
from peakgate.server.policy import Policy
from peakgate.server.predictor import Predictor
from peakgate.server.requests import SeenRequests
from peakgate.server.retention import Forgetter, Retention
from peakgate.server.service import PredictionService
from peakgate.server.shadow_starter import ShadowStarter
from peakgate.server.store.base import Store
from peakgate.server.telemetry import TelemetryService
from peakgate.server.tries import Tries
from peakgate.v1.calibration_service_pb2_grpc import add_CalibrationServiceServicer_to_server
from peakgate.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from peakgate.v1.prediction_service_pb2_grpc import add_PredictionServiceServicer_to_server
from peakgate.v1.telemetry_service_pb2_grpc import add_TelemetryServiceServicer_to_server

SWEEP_SECONDS = 30.0
"""Between looks for ended jobs whose last rows are waited for no longer."""

EXPIRE_SECONDS = 600.0
"""Between deletions of predictions that no job uses."""


class Core:
    """One service. Made on a running event loop; `start` before the first call, `stop` after the last one."""

    def __init__(
        self,
        memory: MemoryModel,
        store: Store,
        *,
        policy: Policy,
        metrics: Metrics,
        log: Logger,
        clock: Clock = now_us,
        cache_entries: int = 4096,
        audit_queue_rows: int = 10_000,
        retention_hours: float = 24.0,
        learning: LearningRules = LearningRules(),  # noqa: B008 - it is frozen
        retention: Retention = Retention(),  # noqa: B008 - as above
        seen: SeenRequests | None = None,
    ) -> None:
        self.store = store
        self._clock = clock
        self._log = log
        self._retention_us = int(retention_hours * 3600 * MICROSECONDS)
        prior = Calibrator(epoch=memory.version).snapshot()
        self.judge = Judge(memory, prior, policy, cache_entries=cache_entries)
        self.audit = AuditQueue(store, limit=audit_queue_rows, metrics=metrics, log=log)
        self.keeper = LeaseKeeper(store, metrics=metrics, log=log)
        self.learner = Learner(self.judge, store, self.keeper, learning, clock=clock, metrics=metrics, log=log)
        self.shadow_starter = ShadowStarter(self.learner, store, memory, coverage=policy.coverage, clock=clock, log=log)
        self._follower = Follower(store, self.learner, self.keeper)
        tries = Tries(store, limit=policy.tries_per_day, clock=clock, metrics=metrics, log=log)
        self.predictor = Predictor(self.judge, store, self.audit, clock=clock, metrics=metrics, tries=tries, seen=seen)
        self._telemetry = TelemetryService(store, self.audit, self.learner, clock=clock, metrics=metrics, log=log)
        self.watch = Watch(self.judge, store, clock=clock, metrics=metrics, log=log)
        self._forgetter = Forgetter(store, retention, clock=clock, metrics=metrics)
        self._guard = Guard(metrics, log)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self.ready = False
        self.lost_predictions = 0
        """Answered predictions that a stop could not write."""

    def build_server(
        self, *, interceptors: Sequence[grpc.aio.ServerInterceptor] = (), options: Sequence[tuple[str, object]] = ()
    ) -> grpc.aio.Server:
        """A gRPC server with every service. Interceptors that are added (authentication) run inside the guard."""
        limits = (("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES), ("grpc.so_reuseport", 0))
        server = grpc.aio.server(interceptors=(self._guard, *interceptors), options=(*limits, *options))
        add_PredictionServiceServicer_to_server(PredictionService(self.predictor), server)
        add_TelemetryServiceServicer_to_server(self._telemetry, server)
        calibration = CalibrationService(self.judge, self.store, self.learner, self.keeper, self.shadow_starter, clock=self._clock)
        add_CalibrationServiceServicer_to_server(calibration, server)
        add_CatalogServiceServicer_to_server(CatalogService(), server)
        return server

    async def start(self) -> None:
        """Reads the calibration, learns what a crash left over, and starts the background tasks. Raises STORE_UNAVAILABLE."""
        self.audit.start()
        if self.store.keeps:
            await self.keeper.keep()
            await self._sweep()
            self._tasks = [
                asyncio.create_task(self._every(RENEW_SECONDS, self._keep_lease), name="lease"),
                asyncio.create_task(self._every(LOOK_SECONDS, self._follower.look), name="look"),
                asyncio.create_task(self._every(SWEEP_SECONDS, self._sweep), name="sweep"),
                asyncio.create_task(self._every(EXPIRE_SECONDS, self._expire), name="expire"),
                asyncio.create_task(self._every(SWEEP_SECONDS, self.shadow_starter.retell, first=0.0), name="retell"),
            ]
        self.ready = True

    async def stop(self, grace_seconds: float) -> None:
        """Lets what is under way end, writes what waits, and closes the store."""
        self.ready = False
        self._stopping.set()
        self.shadow_starter.close()
        self.lost_predictions, _ = await asyncio.gather(self.audit.stop(grace_seconds), self._end_tasks(grace_seconds))
        self.predictor.close()
        if self.audit.healthy:  # else the lease ends by itself
            with suppress(PeakgateError):
                await self.keeper.give_up()
        await asyncio.to_thread(self.store.close)

    async def _end_tasks(self, grace_seconds: float) -> None:
        """A task that is in the database ends there: its thread could not be cancelled."""
        late = (await asyncio.wait(self._tasks, timeout=grace_seconds))[1] if self._tasks else ()
        for task in late:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _stops_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return self._stopping.is_set()

    async def _every(self, seconds: float, work: Callable[[], Coroutine[None, None, None]], *, first: float | None = None) -> None:
        """`first`: the wait before the first time, where it is another one."""
        pause = seconds if first is None else first
        while not await self._stops_within(pause):
            pause = seconds
            try:
                await work()
            except PeakgateError as error:
                self._log.warning("put off", work=work.__name__, cause=error.message)
            except Exception:  # noqa: BLE001 - a background task must outlive a defect; the log has it
                self._log.exception("background task failed", work=work.__name__)

    async def _keep_lease(self) -> None:
        if await self.keeper.keep():
            await self.learner.learn()

    async def _sweep(self) -> None:
        await self.learner.load()
        await self.learner.learn()
        await self.watch.run()

    async def _expire(self) -> None:
        expired = await asyncio.to_thread(self.store.expire, self._clock() - self._retention_us)
        if expired:
            self._log.info("expired", predictions=expired)
        deleted = await self._forgetter.run()
        if any(deleted.values()):
            self._log.info("deleted", **deleted)
