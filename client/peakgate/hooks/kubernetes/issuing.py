"""An authority of our own and a leaf for the webhook's service. Pure but for the clock that is handed in and the keys that are drawn.

Periods are those of open-policy-agent/cert-controller (pkg/rotator): the authority ten years, the leaf one, renewed 90 days ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS, LEAF_DAYS, AHEAD_DAYS = 3650, 365, 90
CLOCK_SKEW = timedelta(hours=1)
AUTHORITY, SERVER = "peakgate webhook authority", "peakgate webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


def make_authority(now: datetime) -> Pair:
    """One that signs leaves and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(AUTHORITY)
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def make_leaf(authority: Pair, hosts: Sequence[str], now: datetime) -> Pair:
    """A certificate for host names and addresses, signed by the authority."""
    signer = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is of another kind than those that are made here")  # noqa: TRY004 - bad content, not a bad call
    issuer = x509.load_pem_x509_certificate(authority.certificate).subject
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(SERVER), issuer, key.public_key(), now, LEAF_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return _pair(certificate, key)


def is_due(pair: Pair, hosts: Sequence[str], now: datetime) -> bool:
    """Whether a pair has to be made anew: it ends soon, cannot be read, does not belong together, or is not for these hosts."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
        if hosts:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            missing = any(each not in names for each in map(_host, hosts))
        else:
            missing = False
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return True
    ends = certificate.not_valid_after_utc - timedelta(days=AHEAD_DAYS)
    return missing or now >= ends or certificate.public_key() != key.public_key()


def signed_by(leaf: Pair, authority: Pair) -> bool:
    """Whether the authority signed the leaf."""
    try:
        certificate = x509.load_pem_x509_certificate(leaf.certificate)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    except Exception:  # noqa: BLE001 - whatever is wrong with a signature, it is none
        return False
    return True


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = serialization.Encoding.PEM
    return Pair(
        certificate=certificate.public_bytes(pem),
        key=key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
