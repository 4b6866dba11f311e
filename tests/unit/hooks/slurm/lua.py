"""Plays submissions through deploy/slurm/peakgate.lua in a Lua of its own, with a table `slurm` like slurmctld's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "deploy/slurm"
PLAYER = Path(__file__).with_name("player.lua")
VERSIONS = ("5.1", "5.4")
NO_VAL16, NO_VAL = 65534, 4294967294
Lua = str | int | float | bool | Mapping[str, "Lua"] | Sequence["Lua"] | None


@dataclass(kw_only=True)
class Call:
    """One call of the hook: job_desc, job_rec of a modification, who calls."""

    job: Mapping[str, Lua]
    record: Mapping[str, Lua] | None = None
    uid: int = 1001
    wait_seconds: float = 0.0


@dataclass(kw_only=True)
class Played:
    """What came of it: the code, what the user saw, what stands in the controller's log, what job_desc holds afterwards."""

    code: int = -1
    seconds: float = 0.0
    says: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    job: dict[str, str] = field(default_factory=dict)


def program(name: str, version: str) -> str:
    """lua or luac of a version; skips where it is not installed."""
    found = shutil.which(f"{name}{version}")
    if found is None:
        pytest.skip(f"{name}{version} is not installed (Debian: lua{version}), so the Slurm hook is not tested under it")
    return found


def has_luasocket(version: str) -> bool:
    """Whether that Lua finds LuaSocket."""
    done = subprocess.run([program("lua", version), "-e", 'require "socket.unix"'], capture_output=True, check=False)
    return done.returncode == 0


def need_luasocket(version: str) -> None:
    """Skips where it does not."""
    if not has_luasocket(version):
        pytest.skip(f"LuaSocket for Lua {version} is not installed (Debian: lua-socket), so the hook's call is not tested under it")


def play(calls: Sequence[Call], *, version: str = "5.1", settings: Mapping[str, Lua] | None = None, before: str = "") -> list[Played]:
    """What each call came to, all in one Lua; `before`: Lua that runs before the module is loaded."""
    told: dict[str, Lua] = {
        "folder": str(FOLDER),
        "settings": settings or {},
        "calls": [{"job": dict(c.job), "record": c.record, "uid": c.uid, "wait": c.wait_seconds} for c in calls],
    }
    source = f"{before}\ntold = {written(told)}\ndofile({written(str(PLAYER))})\n"
    done = subprocess.run(
        [program("lua", version), "-"], input=source.encode("utf-8", "surrogateescape"), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return _read(done.stdout.decode("utf-8", "replace"))


def written(value: Lua) -> str:
    """A value in Lua's syntax."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_escaped(byte) for byte in value.encode("utf-8", "surrogateescape")) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"[{written(key)}] = {written(each)}" for key, each in value.items() if each is not None) + "}"
    return "{" + ", ".join(written(each) for each in value) + "}"


def _escaped(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:03d}"


def _read(output: str) -> list[Played]:
    played: list[Played] = []
    for line in output.splitlines():
        kind, _, text = line.partition("\t")
        if kind == "call":
            played.append(Played())
        elif kind == "user":
            played[-1].says.append(text)
        elif kind == "log":
            played[-1].log.append(text)
        elif kind == "field":
            name, _, value = text.partition("\t")
            played[-1].job[name] = value
        elif kind == "seconds":
            played[-1].seconds = float(text)
        elif kind == "code":
            played[-1].code = int(text)
    return played
