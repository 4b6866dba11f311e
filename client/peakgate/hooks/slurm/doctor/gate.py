"""The gate: its socket, and whether it answers in time."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from peakgate.client.doctor.check import Check, State
from peakgate.hooks.slurm.doctor.site import Site, groups_of
from peakgate.hooks.slurm.wire import MOST_REPLY_BYTES, VERSION

BUDGET_SECONDS = 0.25
"""What the controller waits (peakgate.lua, budget_seconds)."""

PATIENCE_SECONDS = 3.0
START = "systemctl enable --now peakgate-gate"


def gate_checks(site: Site, path: Path) -> Iterator[Check]:
    """The answer is asked for only where there is a socket."""
    there = gate_socket(site, path)
    yield there
    if there.state is not State.bad:
        yield answer(path)
    yield from backups(site)


def gate_socket(site: Site, path: Path) -> Check:
    """Whether it is there, and the controller's user may write to it."""
    try:
        found = path.stat()
    except OSError as error:
        return Check(name="socket", state=State.bad, found=f"{path}: {error.strerror}", remedy=f"start the gate on this host: {START}")
    if not stat.S_ISSOCK(found.st_mode):
        return Check(name="socket", state=State.bad, found=f"{path} is no socket", remedy=f"remove it, then {START}")
    bits = 0o200 if found.st_uid == site.user_id else 0o020 if found.st_gid in groups_of(site.user) else 0o002
    told = f"{path}, mode {stat.S_IMODE(found.st_mode):04o}"
    if site.user_id and not found.st_mode & bits:
        remedy = f"run the gate in a group of {site.user}'s (Group= of its unit), and with --allow-user {site.user}"
        return Check(name="socket", state=State.bad, found=f"{told}: {site.user} may not write to it", remedy=remedy)
    return Check(name="socket", state=State.ok, found=told)


def answer(path: Path) -> Check:
    """Asks about a job without GPUs, about which there is nothing to say."""
    began = time.monotonic()
    try:
        reply = _asked(path)
    except TimeoutError:
        remedy = (
            "restart it, and see its journal; meanwhile each third submission waits a quarter of a second, and jobs are admitted unchecked"
        )
        return Check(name="gate", state=State.bad, found=f"does not answer within {PATIENCE_SECONDS:.0f} s", remedy=remedy)
    except OSError as error:
        return Check(name="gate", state=State.bad, found=f"{path}: {error.strerror or error}", remedy=f"start the gate: {START}")
    milliseconds = (time.monotonic() - began) * 1000
    if not reply.startswith("ALLOW -"):
        told = reply.splitlines()[0][:80] if reply else "the connection is cut"
        remedy = (
            "run this as root or as the gate's user; else the gate is of another release"
            if not reply
            else "install gate and hook of one release"
        )
        return Check(name="gate", state=State.note if not reply and os.geteuid() else State.bad, found=f"no answer: {told}", remedy=remedy)
    if milliseconds > BUDGET_SECONDS * 1000:
        remedy = "see its journal and the host's load: the controller does not wait so long"
        return Check(name="gate", state=State.bad, found=f"answers after {milliseconds:.0f} ms", remedy=remedy)
    return Check(name="gate", state=State.ok, found=f"answers in {milliseconds:.0f} ms")


def backups(site: Site) -> Iterator[Check]:
    """A backup controller asks a gate on its own host."""
    if site.backups:
        found = f"backup controllers: {', '.join(site.backups)}"
        yield Check(name="backups", state=State.note, found=found, remedy="install peakgate.lua and run the gate there too; run this there")


def _asked(path: Path) -> str:
    question = json.dumps({"v": VERSION, "op": "submit", "uid": os.geteuid(), "fields": {}})
    deadline = time.monotonic() + PATIENCE_SECONDS
    reply = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        connection.connect(str(path))
        connection.sendall(question.encode() + b"\n")
        while not reply.endswith(b"END\n") and len(reply) < MOST_REPLY_BYTES:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            part = connection.recv(1024)
            if not part:
                break
            reply += part
    return reply.decode(errors="replace")
