"""The agent's control socket: pause, resume, status. One JSON object a line each way; only the agent's user and root may connect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import platformdirs
import structlog

from peakgate.agent.errors import ServiceUnavailableError, UsageError
from peakgate.agent.unix_sockets import remove_stale
from peakgate.agent.watcher import Watcher

RUN_FOLDER = Path("/run/peakgate")
NAME = "control.sock"
LONGEST_PAUSE_SECONDS = 24 * 3600.0
"""A day without figures is the most that one command may cost."""
REOPEN_LOOK_SECONDS = 0.05
"""Between two looks whether the watching thread has opened NVML again."""
NOBODY = "Start the agent, or name its socket with --control"

log = structlog.get_logger("peakgate.agent.control")


def default_control() -> Path:
    """Where the socket is when nobody says."""
    if os.access(RUN_FOLDER, os.W_OK):
        return RUN_FOLDER / NAME
    return platformdirs.user_state_path("peakgate") / f"agent-{NAME}"


@contextlib.asynccontextmanager
async def control_socket(path: Path | None, watcher: Watcher) -> AsyncIterator[None]:
    """Answers while the block runs; None: not at all. A socket that cannot be made is said once: watching matters more."""
    if path is None:
        yield
        return
    try:
        listening = _bound(path)
    except OSError as error:
        log.warning("no control socket", path=str(path), problem=str(error))
        yield
        return
    server = await asyncio.start_unix_server(lambda reader, writer: _serve(watcher, reader, writer), sock=listening)
    try:
        yield
    finally:
        server.close()
        await asyncio.to_thread(path.unlink, missing_ok=True)


def ask(path: Path, *, timeout_seconds: float, **request: object) -> dict[str, object]:
    """Sends a request to a running agent; its answer. Raises ServiceUnavailableError when none answers, UsageError when it refuses."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile(encoding="utf-8") as answers:
                answer = json.loads(answers.readline())
    except (OSError, ValueError) as error:
        raise ServiceUnavailableError(f"no agent answers on {path}: {error}. {NOBODY}") from error
    if "problem" in answer:
        raise UsageError(str(answer["problem"]))
    return dict(answer)


def _bound(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(path, socket.SOCK_STREAM)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    return listening


async def _serve(watcher: Watcher, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        request = json.loads(await reader.readline())
        answer = await _answer(watcher, request)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        answer = {"problem": f"not understood: {error}"}
    with contextlib.suppress(ConnectionError):
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
    writer.close()


async def _answer(watcher: Watcher, request: dict[str, object]) -> dict[str, object]:
    timeout_seconds = float(str(request.get("timeout_limit", 30.0)))
    match request["verb"]:
        case "pause":
            seconds = float(str(request["seconds"]))
            if not 0 < seconds <= LONGEST_PAUSE_SECONDS:
                raise ValueError(f"a pause takes above 0 and at most {LONGEST_PAUSE_SECONDS:.0f} seconds, not {seconds}")
            watcher.hold.begin(timeout_seconds + seconds)
            if await asyncio.to_thread(watcher.hold.wait_free, timeout_seconds):
                watcher.hold.begin(seconds)  # the time counts from when NVML is closed
        case "resume":
            watcher.hold.end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    while not watcher.is_up:  # noqa: ASYNC110 (another thread's)
                        await asyncio.sleep(REOPEN_LOOK_SECONDS)
        case "status":
            pass
        case other:
            raise ValueError(f"verb {other!r}")
    return {"state": _state(watcher), "driver": watcher.driver_version, "gpus": sorted(watcher.sampler.gpus)}


def _state(watcher: Watcher) -> str:
    if watcher.is_up:
        return "pausing" if watcher.hold.is_on else "watching"
    return "paused" if watcher.hold.is_on else "no driver"
