"""The certificate that the listener shows, read again whenever its files change: a new handshake gets the new one, nobody is cut off."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""As a Secret of type kubernetes.io/tls is mounted; cert-manager adds ca.crt."""

PERIOD_SECONDS = 0.25
"""Between looks at the times of two files, which cost microseconds."""

Stamp = tuple[tuple[int, int, int], ...]


class CertificateError(Exception):
    """Files that hold no certificate with its key, in words for an operator."""


@dataclass(kw_only=True)
class LiveCertificate:
    """`context` is the listener's; a broken pair leaves the last good one in force and is said once. `on_reload`: ok or failed."""

    folder: Path
    tell: Callable[[str, str], None]
    on_reload: Callable[[str], None] = lambda _: None
    context: ssl.SSLContext = field(init=False)
    expiry_seconds: float = field(default=0.0, init=False)
    """When it ends, in seconds since 1970."""
    _stamp: Stamp = field(default=(), init=False)

    def __post_init__(self) -> None:
        """Reads the files. Raises CertificateError."""
        self.context = _server_context()
        self._stamp = self._look()
        self._load()

    def look(self) -> None:
        """Reads the files again when they have changed."""
        if (stamp := self._look()) == self._stamp:
            return
        self._stamp = stamp
        try:
            self._load()
        except CertificateError as error:
            self.tell("error", f"{error}; the certificate that was in use stays")
            self.on_reload("failed")
            return
        self.tell("info", f"the certificate in {self.folder} was read again")
        self.on_reload("ok")

    async def watch(self) -> None:
        """Looks again and again, for ever."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.look()

    def _load(self) -> None:
        """A pair that does not belong together is tried on a context of its own: loading half of it would break the live one."""
        paths = self.folder / CERTIFICATE, self.folder / KEY
        try:
            _server_context().load_cert_chain(*paths)
            expiry = _expiry_of(paths[0])
            self.context.load_cert_chain(*paths)
        except (OSError, ValueError, IndexError) as error:
            raise CertificateError(f"{self.folder} holds no {CERTIFICATE} with its {KEY}: {error}") from error
        self.expiry_seconds = expiry

    def _look(self) -> Stamp:
        """Of both files; a mounted Secret swaps the folder behind them, so that the number of the file changes as well."""
        found = []
        for name in (CERTIFICATE, KEY):
            try:
                stat = (self.folder / name).stat()
            except OSError:
                continue
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(found)


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _expiry_of(path: Path) -> float:
    """Of the first certificate of a file, which is the leaf."""
    return x509.load_pem_x509_certificates(path.read_bytes())[0].not_valid_after_utc.timestamp()
