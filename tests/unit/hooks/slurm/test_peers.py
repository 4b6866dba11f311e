"""The gate's socket: who may ask, how much, for how long."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from peakgate.hooks.slurm import peers as module
from peakgate.hooks.slurm.peers import Peers, SocketError, allowed_users, listen


async def echo(line: bytes) -> bytes:
    """Answers with the length of the request."""
    await asyncio.sleep(0)
    return f"{len(line)}\n".encode()


@asynccontextmanager
async def listening(path: Path, cut: list[str], *, allowed: frozenset[int] | None = None, seconds: float = 5.0) -> AsyncIterator[Peers]:
    """A socket that this user may ask."""
    peers = Peers(answer=echo, allowed=allowed or frozenset({os.geteuid()}), refuse=cut.append, read_seconds=seconds)
    server = await listen(path, peers)
    try:
        yield peers
    finally:
        server.close()


async def ask(path: Path, content: bytes, *, end: bool = False) -> bytes:
    """What comes back."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(content)
    if end:
        writer.write_eof()
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_line_is_answered_and_the_connection_closed(tmp_path: Path) -> None:
    """Many at once."""
    async with listening(tmp_path / "s", cut := list[str]()):
        found = await asyncio.gather(*(ask(tmp_path / "s", b"x" * number + b"\n") for number in range(50)))
    assert found == [f"{number + 1}\n".encode() for number in range(50)]
    assert cut == []


async def test_other_users_are_not_answered(tmp_path: Path) -> None:
    """The kernel says who asks."""
    async with listening(tmp_path / "s", cut := list[str](), allowed=frozenset({os.geteuid() + 1})):
        assert await ask(tmp_path / "s", b"x\n") == b""
    assert cut == ["not_allowed"]


@pytest.mark.parametrize(
    ("content", "end", "want"),
    [(b"x" * (2 << 20), False, "too_long"), (b"no line", True, "cut_off"), (b"no line", False, "slow")],
)
async def test_what_is_no_line_is_cut(tmp_path: Path, content: bytes, end: bool, want: str) -> None:
    """One that is too long, that ends early, or that never ends."""
    async with listening(tmp_path / "s", cut := list[str](), seconds=0.3):
        assert await ask(tmp_path / "s", content, end=end) == b""
        await asyncio.sleep(0.05)
    assert want in cut


async def test_somebody_who_looks_whether_the_gate_is_there_is_no_fault(tmp_path: Path) -> None:
    """And learns nothing."""
    async with listening(tmp_path / "s", cut := list[str]()):
        assert await ask(tmp_path / "s", b"", end=True) == b""
    assert cut == []


async def test_only_so_many_are_served_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are cut before they are read."""
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 2)
    async with listening(tmp_path / "s", cut := list[str](), seconds=1.0):
        waiting = [await asyncio.open_unix_connection(tmp_path / "s") for _ in range(2)]
        await asyncio.sleep(0.05)
        assert await ask(tmp_path / "s", b"x\n") == b""
        for _, writer in waiting:
            writer.close()
    assert cut == ["too_many"]


async def test_those_who_may_not_connect_cannot(tmp_path: Path) -> None:
    """The file's mode keeps out whoever is neither its owner nor of its group."""
    async with listening(tmp_path / "s", []):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o660


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    """It may be anybody's."""
    (tmp_path / "s").write_text("mine")
    with pytest.raises(SocketError, match="is no socket"):
        async with listening(tmp_path / "s", []):
            pass
    assert (tmp_path / "s").read_text() == "mine"


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the system's word."""
    with pytest.raises(SocketError, match="No such file"):
        async with listening(tmp_path / "none" / "s", []):
            pass


def test_who_may_ask_is_known_by_name_or_number() -> None:
    """root and the gate's own user always."""
    assert allowed_users(["nobody", "77"]) == {0, os.geteuid(), pwd.getpwnam("nobody").pw_uid, 77}
    with pytest.raises(SocketError, match="no user is called nosuchuser"):
        allowed_users(["nosuchuser"])
