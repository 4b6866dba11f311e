"""The service inside a command: the same core behind a socket that only this user can open. Quick to start, quiet."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peakgate.memory.catalog.models import ModelSpec
from peakgate.server.core import Core
from peakgate.server.errors import PeakgateError
from peakgate.server.learning import LearningRules
from peakgate.server.logs import QuietLogger
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.metrics import NullMetrics
from peakgate.server.policy import Policy
from peakgate.server.store.base import Store
from peakgate.server.store.null import NullStore

GRACE_SECONDS = 10.0
"""For the last predictions to reach the database."""

POLICY_VARIABLES = (
    "PEAKGATE_COVERAGE",
    "PEAKGATE_CAREFUL_COVERAGE",
    "PEAKGATE_OOM_COST",
    "PEAKGATE_REJECTION_COST",
    "PEAKGATE_TRIES_PER_DAY",
    "PEAKGATE_OPERATOR_RESERVE_BYTES",
    "PEAKGATE_GPU_PRICES",
    "PEAKGATE_GPU_PREFERENCE",
)

MODELS_VARIABLE = "PEAKGATE_MODELS"
PROMOTION_VARIABLE = "PEAKGATE_CALIBRATION_PROMOTION"


@contextmanager
def open_embedded(database_url: str | None, *, memory: MemoryModel | None = None) -> Iterator[str]:
    """A service in this process, as a gRPC target (unix:…); it ends with the block.

    Without a database it keeps nothing and learns nothing. Raises PeakgateError when the database cannot be used.
    """
    store: Store = _open_store(database_url) if database_url else NullStore()
    chosen = memory if memory is not None else memory_model(_site_models())
    with tempfile.TemporaryDirectory(prefix="peakgate-", dir=_short_folder()) as folder:
        target = f"unix:{Path(folder) / 'socket'}"
        started: Future[_Running] = Future()
        thread = threading.Thread(target=_run_in_thread, args=(chosen, store, target, started), name="peakgate service", daemon=True)
        thread.start()
        running = started.result()
        try:
            yield target
        finally:
            running.loop.call_soon_threadsafe(running.stopping.set)
            thread.join()


@dataclass(frozen=True, slots=True)
class _Running:
    loop: asyncio.AbstractEventLoop
    stopping: asyncio.Event


def _run_in_thread(memory: MemoryModel, store: Store, target: str, started: Future[_Running]) -> None:
    try:
        asyncio.run(_run(memory, store, target, started))
    except Exception as error:  # noqa: BLE001 - the caller's thread raises it
        if started.done():
            QuietLogger().exception("the embedded service failed")
        else:
            started.set_exception(error)


async def _run(memory: MemoryModel, store: Store, target: str, started: Future[_Running]) -> None:
    promotes = os.environ.get(PROMOTION_VARIABLE, "auto") == "auto"  # any other word is the careful one
    core = Core(memory, store, policy=_policy(), metrics=NullMetrics(), log=QuietLogger(), learning=LearningRules(promotes=promotes))
    server = core.build_server()
    server.add_insecure_port(target)
    await core.start()
    await server.start()
    stopping = asyncio.Event()
    started.set_result(_Running(asyncio.get_running_loop(), stopping))
    await stopping.wait()
    await server.stop(GRACE_SECONDS)
    await core.stop(GRACE_SECONDS)


def _open_store(database_url: str) -> Store:
    try:
        from peakgate.server.store.sql import open_store
    except ModuleNotFoundError as error:
        raise PeakgateError("STORE_UNAVAILABLE", f"a database needs {error.name}: pip install 'peakgate[server]'") from error
    return open_store(database_url, shared=True)  # several commands may use one file


def _policy() -> Policy:
    """The operator's policy; reading settings costs 0.1 s, so only when there is one in the environment. Raises SETTING_INVALID."""
    if not any(name in os.environ for name in POLICY_VARIABLES):
        return Policy()
    from pydantic import ValidationError

    from peakgate.server.settings import Settings, problems

    try:
        return Settings().policy()
    except ValidationError as error:
        raise PeakgateError("SETTING_INVALID", problems(error)) from error


def _site_models() -> tuple[ModelSpec, ...]:
    """The models of PEAKGATE_MODELS; YAML is only loaded for them. Raises SETTING_INVALID."""
    place = os.environ.get(MODELS_VARIABLE)
    if not place:
        return ()
    from peakgate.server.site_models import SiteModelError, load_site_models

    try:
        return load_site_models(place)
    except SiteModelError as error:
        raise PeakgateError("SETTING_INVALID", f"{MODELS_VARIABLE}: {error}") from error


def _short_folder() -> str | None:
    """A place whose sockets stay within the 107 characters of sun_path (unix(7)); None: the usual one."""
    return None if len(tempfile.gettempdir()) < 60 else "/tmp"  # noqa: S108 - a private folder is made inside it
