"""What proves to clients that this is the engine, and to the engine that a client may use it.

An authority of the engine's own signs one certificate; its key is thrown away at once, so that it
can never sign another. Both are renewed, when the engine starts, before they expire.
"""

import secrets
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vcjob.local.service.home import EngineHome, write_private

if TYPE_CHECKING:
    from cryptography import x509

_VALID = timedelta(days=365)
_RENEWED_BEFORE = timedelta(days=60)
_TOKEN_BYTES = 32


class Credentials(msgspec.Struct, frozen=True):
    """The authority's certificate (PEM) and the token for clients; the files for the server."""

    authority: str
    token: str
    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """TLS settings for the server."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


def credentials(home: EngineHome, hosts: Iterable[str], now: datetime | None = None) -> Credentials:
    """Those of an earlier start, as long as they hold; raises StateUnusable.

    ``hosts`` are names and addresses by which clients reach the engine.
    """
    now = now or datetime.now(UTC)
    names = sorted({"127.0.0.1", "localhost", "::1", *hosts})
    certificate, key = home.path / "certificate.pem", home.path / "key.pem"
    authority, token = home.path / "authority.pem", home.path / "token"
    expected = home.path / "certificate.json"
    if not _holds(expected, names, now, (certificate, key, authority)):
        made = _make(names, now)
        for path, content in zip((authority, certificate, key), made, strict=True):
            write_private(path, content)
        said = {"names": names, "renew": (now + _VALID - _RENEWED_BEFORE).timestamp()}
        write_private(expected, msgspec.json.encode(said))
    if not _read(token):
        write_private(token, secrets.token_urlsafe(_TOKEN_BYTES).encode())
    return Credentials(_read(authority), _read(token), certificate, key)


def _holds(expected: Path, names: list[str], now: datetime, files: Iterable[Path]) -> bool:
    try:
        said = msgspec.json.decode(expected.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    if not isinstance(said, dict) or said.get("names") != names:
        return False
    return now.timestamp() < said.get("renew", 0) and all(map(_read, files))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _make(names: list[str], now: datetime) -> tuple[bytes, bytes, bytes]:
    """The authority's certificate, the server's, and the server's key, in PEM."""
    # Imported here: it takes a tenth of a second, and is needed once a year.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def begun(subject: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("vcjob engine authority"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
        )

    signer = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = (
        begun("vcjob engine authority", signer.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(signer, hashes.SHA256())
    )
    certificate = (
        begun("vcjob engine", key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return authority.public_bytes(pem), certificate.public_bytes(pem), private


def _usage(*, signs_certificates: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
