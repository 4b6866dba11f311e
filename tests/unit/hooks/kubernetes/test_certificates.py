"""Certificates: made, renewed, kept together by replicas, and read again by a listener that stays up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from peakgate.hooks.kubernetes import own_certificates
from peakgate.hooks.kubernetes.certificates import CERTIFICATE, KEY, CertificateError, LiveCertificate
from peakgate.hooks.kubernetes.issuing import AHEAD_DAYS, LEAF_DAYS, Pair, is_due, make_authority, make_leaf, signed_by
from peakgate.hooks.kubernetes.own_certificates import ConflictError, FolderStore, OwnCertificates, StoreError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOSTS = ("peakgate-webhook.peakgate.svc", "127.0.0.1")


@dataclass
class SharedStore:
    """A store that several replicas use: whoever wrote since the last read is in conflict."""

    content: dict[str, bytes] = field(default_factory=dict)
    version: int = 0
    before_write: Callable[[], None] = lambda: None
    seen: int = 0

    def read(self) -> Mapping[str, bytes]:
        """What is there."""
        self.seen = self.version
        return dict(self.content)

    def write(self, content: Mapping[str, bytes]) -> None:
        """Raises ConflictError when somebody wrote meanwhile."""
        before, self.before_write = self.before_write, lambda: None
        before()
        if self.version != self.seen:
            raise ConflictError
        self.content, self.version = dict(content), self.version + 1


def own(store: SharedStore | FolderStore, folder: Path, now: datetime = NOW, announced: list[bytes] | None = None) -> OwnCertificates:
    """Certificates at a moment."""
    told = announced if announced is not None else []

    def announce(authority: bytes) -> bool:
        told.append(authority)
        return True

    return OwnCertificates(store=store, folder=folder, hosts=HOSTS, tell=lambda *_: None, announce=announce, now=lambda: now)


def test_a_leaf_is_trusted_through_its_authority(tmp_path: Path) -> None:
    """OpenSSL takes the pair, and a client that trusts the authority trusts the leaf for its names alone."""
    authority = make_authority(datetime.now(UTC))
    leaf = make_leaf(authority, HOSTS, datetime.now(UTC))
    assert signed_by(leaf, authority)
    assert not signed_by(leaf, make_authority(datetime.now(UTC)))
    (tmp_path / CERTIFICATE).write_bytes(leaf.certificate)
    (tmp_path / KEY).write_bytes(leaf.key)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / CERTIFICATE, tmp_path / KEY)
    assert not is_due(leaf, HOSTS, datetime.now(UTC))
    assert is_due(leaf, (*HOSTS, "other.svc"), datetime.now(UTC))


@pytest.mark.parametrize(
    ("days", "want"), [(0, False), (LEAF_DAYS - AHEAD_DAYS - 1, False), (LEAF_DAYS - AHEAD_DAYS, True), (LEAF_DAYS, True)]
)
def test_a_leaf_is_renewed_ahead_of_its_end(days: int, want: bool) -> None:
    """Three months before it would be refused."""
    leaf = make_leaf(make_authority(NOW), HOSTS, NOW)
    assert is_due(leaf, HOSTS, NOW + timedelta(days=days)) is want


def test_what_cannot_be_read_is_due() -> None:
    """Nothing, noise, a key of another pair."""
    first, second = make_authority(NOW), make_authority(NOW)
    for pair in (
        Pair(certificate=b"", key=b""),
        Pair(certificate=b"x", key=first.key),
        Pair(certificate=first.certificate, key=second.key),
    ):
        assert is_due(pair, (), NOW)


def test_certificates_are_made_once_and_announced_always(tmp_path: Path) -> None:
    """A second start finds them; the API server is told each time, in case somebody changed what it knows."""
    store, announced = SharedStore(), list[bytes]()
    own(store, tmp_path, announced=announced).ensure()
    first = dict(store.content)
    own(store, tmp_path, announced=announced).ensure()
    assert store.content == first
    assert announced == [first["ca.crt"]] * 2
    assert (tmp_path / CERTIFICATE).read_bytes() == first[CERTIFICATE]
    assert not (tmp_path / "ca.key").exists()


def test_a_leaf_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    """So that nothing has to be told anew."""
    store = SharedStore()
    own(store, tmp_path).ensure()
    first = dict(store.content)
    own(store, tmp_path, NOW + timedelta(days=LEAF_DAYS)).ensure()
    assert store.content["ca.crt"] == first["ca.crt"]
    assert store.content[CERTIFICATE] != first[CERTIFICATE]


def test_of_two_replicas_one_makes_them(tmp_path: Path) -> None:
    """The other reads what the first wrote."""
    store = SharedStore()
    other = SharedStore()

    def first_writes() -> None:
        own(other, tmp_path / "b").ensure()
        store.content, store.version = other.content, store.version + 1

    store.before_write = first_writes
    own(store, tmp_path / "a").ensure()
    assert (tmp_path / "a" / CERTIFICATE).read_bytes() == (tmp_path / "b" / CERTIFICATE).read_bytes() == store.content[CERTIFICATE]


def test_endless_conflicts_are_told(tmp_path: Path) -> None:
    """Whoever writes all the time."""

    class Contested(SharedStore):
        def write(self, content: Mapping[str, bytes]) -> None:
            raise ConflictError

    with pytest.raises(StoreError, match="again and again"):
        own(Contested(), tmp_path).ensure()


def test_a_folder_keeps_all_four(tmp_path: Path) -> None:
    """For one replica: the listener reads from the same folder, which nobody else can."""
    own(FolderStore(tmp_path / "tls"), tmp_path / "tls").ensure()
    assert sorted(path.name for path in (tmp_path / "tls").iterdir()) == ["ca.crt", "ca.key", CERTIFICATE, KEY]
    assert (tmp_path / "tls" / KEY).stat().st_mode & 0o077 == 0


def test_a_broken_pair_leaves_the_last_one_in_use(tmp_path: Path) -> None:
    """It is told once; the next whole pair is taken."""
    said, outcomes = list[str](), list[str]()
    authority = make_authority(NOW)

    def put(certificate: Pair, key: Pair) -> None:
        (tmp_path / KEY).write_bytes(key.key)
        (tmp_path / CERTIFICATE).write_bytes(certificate.certificate)

    first, second = (make_leaf(authority, HOSTS, NOW + timedelta(days=days)) for days in (0, 10))
    put(first, first)
    live = LiveCertificate(folder=tmp_path, tell=lambda level, _: said.append(level), on_reload=outcomes.append)
    want_expiry = (NOW + timedelta(days=LEAF_DAYS)).timestamp()
    assert live.expiry_seconds == want_expiry
    put(second, first)
    live.look()
    live.look()
    assert (said, outcomes, live.expiry_seconds) == (["error"], ["failed"], want_expiry)
    put(second, second)
    live.look()
    assert (outcomes[-1], live.expiry_seconds) == ("ok", want_expiry + 10 * 86400)


def test_no_certificate_is_a_clear_word(tmp_path: Path) -> None:
    """At the start there must be one."""
    with pytest.raises(CertificateError, match=r"tls\.crt"):
        LiveCertificate(folder=tmp_path, tell=lambda *_: None)


async def test_a_configuration_made_anew_is_told_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever deletes the configuration to get out of the way, and brings it back, need not restart the webhook."""
    assert own_certificates.CHECK_SECONDS <= 15  # what deploy/README.md promises
    monkeypatch.setattr(own_certificates, "CHECK_SECONDS", 0.001)
    monkeypatch.setattr(own_certificates, "ABSENT_SECONDS", 0.001)
    loop, again = asyncio.get_running_loop(), asyncio.Event()
    announced: list[bytes] = []

    def announce(authority: bytes) -> bool:
        announced.append(authority)
        if len(announced) == 3:
            loop.call_soon_threadsafe(again.set)
        return True

    kept = OwnCertificates(store=SharedStore(), folder=tmp_path, hosts=HOSTS, tell=lambda *_: None, announce=announce, now=lambda: NOW)
    kept.ensure()
    task = asyncio.create_task(kept.keep())
    await asyncio.wait_for(again.wait(), 10)
    task.cancel()
    assert len(set(announced)) == 1


@pytest.mark.parametrize(("comes", "want"), [(1, 1), (3, 3), (10**9, own_certificates.FIRST_TRIES)])
def test_a_webhook_waits_a_while_for_its_configuration(tmp_path: Path, comes: int, want: int) -> None:
    """An installer makes it last and then waits for the webhook; one that never comes, since somebody took it away, holds nothing up."""
    said, slept, asked = list[str](), list[float](), list[bytes]()

    def announce(authority: bytes) -> bool:
        asked.append(authority)
        return len(asked) >= comes

    waiting = own(SharedStore(), tmp_path)
    waiting.announce, waiting.sleep, waiting.tell = announce, slept.append, lambda level, _: said.append(level)
    waiting.begin()
    assert len(asked) == want
    assert sum(slept) <= 30  # the chart's start-up probe gives it four times as long
    assert said == ["info", *(["warning"] if want < comes else [])]


async def test_a_configuration_that_is_not_there_is_looked_for_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few seconds, until it comes; then as rarely as always."""
    monkeypatch.setattr(own_certificates, "ABSENT_SECONDS", 0.001)
    loop, come = asyncio.get_running_loop(), asyncio.Event()
    asked: list[bytes] = []

    def announce(authority: bytes) -> bool:
        asked.append(authority)
        if len(asked) == 4:
            loop.call_soon_threadsafe(come.set)
        return len(asked) >= 4

    kept = OwnCertificates(store=SharedStore(), folder=tmp_path, hosts=HOSTS, tell=lambda *_: None, announce=announce, now=lambda: NOW)
    task = asyncio.create_task(kept.keep())
    await asyncio.wait_for(come.wait(), 10)
    await asyncio.sleep(0.1)
    task.cancel()
    assert len(asked) == 4
