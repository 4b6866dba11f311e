"""New certificates for a running webhook, signed by its own authority, and the one that it then shows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from cryptography import x509
from tests.webhooks import RunningWebhook

from peakgate.hooks.kubernetes.issuing import Pair, make_leaf

SECONDS = 10.0


def swap(webhook: RunningWebhook) -> int:
    """Puts a new leaf where the webhook looks, waits until it shows it, and gives its serial number."""
    folder = webhook.folder / "tls"
    authority = Pair(certificate=(folder / "ca.crt").read_bytes(), key=(folder / "ca.key").read_bytes())
    leaf = make_leaf(authority, ["localhost"], datetime.now(UTC))
    for name, content in (("tls.key", leaf.key), ("tls.crt", leaf.certificate)):
        (folder / f"{name}.new").write_bytes(content)
        (folder / f"{name}.new").rename(folder / name)
    wanted = x509.load_pem_x509_certificate(leaf.certificate).serial_number
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if shown(webhook) == wanted:
            return wanted
        time.sleep(0.02)
    raise RuntimeError(f"the new certificate is not shown after {SECONDS} s:\n{webhook.log[-1000:]}")


def shown(webhook: RunningWebhook) -> int:
    """The serial number of the certificate that a new connection gets."""
    with webhook.socket() as connection:
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number
