"""Certificates of our own making: kept where every replica finds the same ones, renewed ahead of their end, told to the API server.

The store is the truth. Replicas that renew at once do not quarrel: the store takes one of them, and the others read what it took.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from peakgate.hooks.kubernetes.certificates import CERTIFICATE, KEY
from peakgate.hooks.kubernetes.issuing import Pair, is_due, make_authority, make_leaf, signed_by

AUTHORITY_CERTIFICATE, AUTHORITY_KEY = "ca.crt", "ca.key"
CHECK_SECONDS, RETRY_SECONDS, ABSENT_SECONDS = 15.0, 15.0, 2.0
"""A configuration that was made anew, as after it was deleted to get out of the way, has no authority until it is looked at: while there
is none it is looked for more often."""

FIRST_TRIES = 10
"""Installers make the configuration last, and then wait for the webhook: so that one waits for the configuration before it is ready, and
the first job is not admitted in silence. Not for ever, for somebody may have taken the configuration away on purpose."""

MOST_TRIES = 5


class ConflictError(Exception):
    """Somebody else wrote first."""


class StoreError(Exception):
    """Certificates cannot be kept or read, in words for an operator."""


class Store(Protocol):
    """Where the four files are kept together."""

    def read(self) -> Mapping[str, bytes]:
        """What is there, by name; empty at first. Raises StoreError."""

    def write(self, content: Mapping[str, bytes]) -> None:
        """Replaces what was last read. Raises ConflictError and StoreError."""


Announce = Callable[[bytes], bool]
"""Tells the API server the authority's certificate; False: it has no configuration that could be told. Raises StoreError."""


@dataclass(kw_only=True)
class OwnCertificates:
    """`folder`: where the listener reads them from, which belongs to this process alone."""

    store: Store
    folder: Path
    hosts: Sequence[str]
    tell: Callable[[str, str], None]
    announce: Announce = lambda _: True
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep

    def begin(self) -> None:
        """Before reviews come: the first time, with some patience for a configuration to come. Raises StoreError."""
        for _ in range(FIRST_TRIES):
            if self.ensure():
                return
            self.sleep(ABSENT_SECONDS)
        self.tell("warning", "there is no webhook configuration to tell the certificate's authority: nobody is asked yet")

    def ensure(self) -> bool:
        """Reads or makes them, puts them into the folder, tells the API server; whether there was anything to tell. Raises StoreError."""
        for _ in range(MOST_TRIES):
            content = self.store.read()
            renewed = self._renewed(content)
            if renewed is not content:
                try:
                    self.store.write(renewed)
                except ConflictError:
                    continue
                self.tell("info", "a certificate was made")
            _put(self.folder, renewed)
            return self.announce(renewed[AUTHORITY_CERTIFICATE])
        raise StoreError("certificates are written by others again and again")

    async def keep(self) -> None:
        """Checks four times a minute, for ever, and sooner the first time: of two configurations the second may just come. A fault is said
        and tried again soon."""
        pause = ABSENT_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                pause = CHECK_SECONDS if await asyncio.to_thread(self.ensure) else ABSENT_SECONDS
            except StoreError as error:
                self.tell("error", str(error))
                pause = RETRY_SECONDS

    def _renewed(self, content: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The same object when nothing is due."""
        now = self.now()
        authority = Pair(certificate=content.get(AUTHORITY_CERTIFICATE, b""), key=content.get(AUTHORITY_KEY, b""))
        leaf = Pair(certificate=content.get(CERTIFICATE, b""), key=content.get(KEY, b""))
        if not is_due(authority, (), now) and not is_due(leaf, self.hosts, now) and signed_by(leaf, authority):
            return content
        if is_due(authority, (), now):
            authority = make_authority(now)
        leaf = make_leaf(authority, self.hosts, now)
        return {
            AUTHORITY_CERTIFICATE: authority.certificate,
            AUTHORITY_KEY: authority.key,
            CERTIFICATE: leaf.certificate,
            KEY: leaf.key,
        }


@dataclass(frozen=True, slots=True)
class FolderStore:
    """Files on this machine: one replica, or a laptop."""

    folder: Path

    def read(self) -> Mapping[str, bytes]:
        """What is there, by name. Raises StoreError."""
        names = (AUTHORITY_CERTIFICATE, AUTHORITY_KEY, CERTIFICATE, KEY)
        try:
            return {name: (self.folder / name).read_bytes() for name in names if (self.folder / name).exists()}
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be read: {error.strerror or error}") from error

    def write(self, content: Mapping[str, bytes]) -> None:
        """Each file is swapped whole. Raises StoreError."""
        _put(self.folder, content, names=tuple(content))


def _put(folder: Path, content: Mapping[str, bytes], names: Sequence[str] = (CERTIFICATE, KEY)) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in names:
            path = folder / name
            if path.exists() and path.read_bytes() == content[name]:
                continue
            descriptor, new = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content[name])
            Path(new).replace(path)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
