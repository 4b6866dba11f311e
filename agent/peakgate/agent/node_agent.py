"""One run of the agent: the watcher in its thread, the sender and the signals in the event loop, the metrics beside them."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import grpc.aio
import structlog

from peakgate.agent.absence import ended_in_absence
from peakgate.agent.control import control_socket
from peakgate.agent.event_thread import EventThread
from peakgate.agent.hearing import hearing
from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.metrics import AgentCollector
from peakgate.agent.nvml import Nvml
from peakgate.agent.options import Options
from peakgate.agent.proc import ProcFolder
from peakgate.agent.recorder import recording
from peakgate.agent.sampler import Sampler
from peakgate.agent.sender import Sender
from peakgate.agent.serving_metrics import serving_metrics
from peakgate.agent.signals import signals
from peakgate.agent.sources import attribution_of, watching_pods
from peakgate.agent.spool import Spool
from peakgate.agent.tracker import Tracker
from peakgate.agent.transport import StreamTransport, Transport, UnaryTransport
from peakgate.agent.watcher import Watcher
from peakgate.agent.wire import NodeIdentity
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub

if TYPE_CHECKING:  # absent at run time
    from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceAsyncStub

log = structlog.get_logger("peakgate.agent")

DONE, UNDELIVERED = 0, 4
"""Exit status, as for every verb of the command: 4 is "service unavailable"."""


class NodeAgent:
    """One run: the watcher in its thread, the sender in the event loop."""

    def __init__(self, *, options: Options, nvml: Nvml, spool: Spool) -> None:
        self._options = options
        self._nvml = nvml
        self._spool = spool
        self._stop_watching = threading.Event()
        self._stop = asyncio.Event()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> tuple[int, bool]:
        """The exit status, and whether the driver was replaced."""
        self._tell_what_ended()
        async with grpc.aio.insecure_channel(self._options.server) as channel:
            stub: TelemetryServiceAsyncStub = TelemetryServiceStub(channel)
            with contextlib.ExitStack() as stack:
                reports = HelperReports(proc=ProcFolder())
                watcher = self._watcher(asyncio.get_running_loop(), reports, stack)
                transport = self._transport(stub)
                sender = self._sender(stub, transport, watcher)
                pods = stack.enter_context(watching_pods(self._options))
                collector = AgentCollector(nvml=self._nvml, watcher=watcher, spool=self._spool, sender=sender, reports=reports, pods=pods)
                stack.enter_context(serving_metrics(self._options.metrics_port, collector))
                stack.enter_context(hearing(None if self._options.once else self._options.helper_socket, reports))
                stack.enter_context(signals(self._on_signal))
                if self._options.once:
                    await self._look_once(watcher)
                else:
                    async with control_socket(self._options.control, watcher):
                        await self._watch(watcher, sender)
                await self._last_drain(sender)
            await transport.close()
        return self._status(watcher.unwritten), watcher.driver_replaced

    def _tell_what_ended(self) -> None:
        """A spool that cannot be read or written now does not hold up the watch; the next start tells it."""
        try:
            ended = ended_in_absence(self._spool.alive(), proc=ProcFolder())
            self._spool.put(rows=ended.rows, events=ended.events)
        except sqlite3.Error as error:
            log.warning("what ended while no agent ran is not told", problem=str(error))
        else:
            if ended.rows:
                log.info("ended while no agent ran", rows=len(ended.rows), jobs=len(ended.events))

    async def _look_once(self, watcher: Watcher) -> None:
        if not await asyncio.to_thread(watcher.run_once):
            log.warning("no GPU driver answers on this node, so there was nothing to look at")
        self._end()

    def _status(self, unwritten: int) -> int:
        waiting = self._spool.waiting()
        if waiting:
            log.warning("not delivered, kept for the next start", waiting=waiting, spool=str(self._options.spool))
        if unwritten:
            log.error("lost, because the spool could not be written", rows=unwritten, spool=str(self._options.spool))
        return UNDELIVERED if waiting or unwritten else DONE

    async def _watch(self, watcher: Watcher, sender: Sender) -> None:
        watching = asyncio.create_task(asyncio.to_thread(watcher.run))
        watching.add_done_callback(lambda _: self._end())
        sending = asyncio.create_task(sender.run(wake=self._wake, stop=self._stop))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.duration_seconds):
                await self._stop.wait()
        self._end()
        sending.cancel()  # a call that hangs must not hold up the end; what it has not delivered is sent again by the last drain
        await watching
        with contextlib.suppress(asyncio.CancelledError):
            await sending

    async def _last_drain(self, sender: Sender) -> None:
        """Delivers what is left, until that is done, its time is over, or a second signal asks to leave it."""
        waiting = self._spool.waiting()
        if waiting:
            most_seconds = self._options.last_drain_seconds
            log.info("delivering what is left", waiting=waiting, server=self._options.server, at_most_seconds=most_seconds)
        draining = asyncio.create_task(sender.drain_patiently(sleep=asyncio.sleep, given_up=lambda: False))
        hurrying = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({draining, hurrying}, timeout=self._options.last_drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, hurrying):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _on_signal(self) -> None:
        if self._stop.is_set():
            self._hurry.set()
        self._end()

    def _end(self) -> None:
        self._stop_watching.set()
        self._stop.set()
        self._wake.set()

    def _watcher(self, loop: asyncio.AbstractEventLoop, reports: HelperReports, stack: contextlib.ExitStack) -> Watcher:
        proc = ProcFolder()
        attribution = attribution_of(self._options, proc=proc)
        sampler = Sampler(
            nvml=self._nvml,
            device_period_seconds=self._options.device_period_seconds,
            process_period_seconds=self._options.process_period_seconds,
            events=None if self._options.once else EventThread(nvml=self._nvml),
            enable_accounting=self._options.enable_accounting,
        )
        return Watcher(
            nvml=self._nvml,
            sampler=sampler,
            tracker=Tracker(attribution=attribution, proc=proc, boot_id=proc.boot_id()),
            spool=self._spool,
            stop=self._stop_watching,
            on_urgent=lambda: _from_thread(loop, self._wake.set),
            recorder=stack.enter_context(recording(self._options.record, attribution, proc)),
            reports=reports.due,
        )

    def _transport(self, stub: TelemetryServiceAsyncStub) -> Transport:
        return StreamTransport(stub=stub) if self._options.transport == "stream" else UnaryTransport(stub=stub)

    def _sender(self, stub: TelemetryServiceAsyncStub, transport: Transport, watcher: Watcher) -> Sender:
        version = metadata.version("peakgate")
        return Sender(
            spool=self._spool,
            transport=transport,
            stub=stub,
            node=lambda: NodeIdentity(node=self._options.node, agent_version=version, driver_version=watcher.driver_version),
            interval_seconds=self._options.interval_seconds,
        )


def _from_thread(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended; the last drain is over
        loop.call_soon_threadsafe(action)
