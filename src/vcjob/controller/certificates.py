"""Certificates, those of servers of ours above all: made, read, and taken into use.

An authority is made for each certificate and its key thrown away at once, so that it can never sign
another, whoever reads what is kept. A renewed certificate therefore has a new authority.
"""

import os
import ssl
from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import msgspec

from vcjob.api.errors import VcjobError

if TYPE_CHECKING:
    from cryptography import x509

VALID = timedelta(days=365)
BACKDATED = timedelta(hours=1)
"""Certificates begin so much earlier: clocks differ."""


class UnusableCertificate(VcjobError):
    """A certificate or key that cannot be read, or that do not belong together."""


class Made(msgspec.Struct, frozen=True):
    """A certificate with its key and the certificate of who signed it, in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


def make_certificate(
    names: Iterable[str], now: datetime, *, owner: str, valid: timedelta = VALID
) -> Made:
    """A server's certificate for ``names`` (hosts and addresses), ``valid`` from ``now`` on.

    ``owner`` is what the certificate says that it is of.
    """
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
            .issuer_name(named(f"{owner} authority"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(now + valid)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
        )

    signer = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority = (
        begun(f"{owner} authority", signer.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(signer, hashes.SHA256())
    )
    certificate = (
        begun(owner, key.public_key())
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
    return Made(authority.public_bytes(pem), certificate.public_bytes(pem), private)


def server_context() -> ssl.SSLContext:
    """TLS settings for a server, 1.2 or newer; ``use_certificate`` says with which certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def use_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show a certificate (PEM) to whoever connects from now on.

    What cannot be used changes nothing. Raises as ``load_chain``.
    """
    pem = certificate.rstrip() + b"\n" + key
    load_chain(server_context(), pem)  # tried out on one that nobody uses
    load_chain(context, pem)


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Give a certificate and its key to a context.

    Raises UnusableCertificate, and OSError where this process has no descriptor left.
    """
    # OpenSSL wants files; these exist in memory only.
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise UnusableCertificate(
            "the certificate does not fit its key, or they are not PEM"
        ) from error
    finally:
        os.close(descriptor)


def read_certificate(pem: bytes) -> "x509.Certificate":
    """The first certificate of a PEM text; raises UnusableCertificate."""
    return read_certificates(pem)[0]


def read_certificates(pem: bytes) -> list["x509.Certificate"]:
    """All certificates of a PEM text, one at least; raises UnusableCertificate."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm) as error:
        raise UnusableCertificate("there is no certificate in PEM") from error


def as_pem(certificates: Iterable["x509.Certificate"]) -> bytes:
    """Certificates one after the other in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def names_of(certificate: "x509.Certificate") -> set[str]:
    """The hosts and addresses that a certificate is for."""
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (
        ValueError,
        x509.DuplicateExtension,
        x509.ExtensionNotFound,
        x509.UnsupportedGeneralNameType,
    ):
        return set()
    return {str(name.value) for name in extension.value}


def is_for(certificate: "x509.Certificate", host: str) -> bool:
    """Whether clients that call a server by this host name take the certificate for its own."""
    within = host.partition(".")[2]
    return not names_of(certificate).isdisjoint({host, f"*.{within}"})


def is_signed_by(certificate: "x509.Certificate", authority: "x509.Certificate") -> bool:
    """Whether it was the authority that signed the certificate."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


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


def _no_password() -> str:
    """Instead of OpenSSL's own question on the terminal."""
    raise ValueError("an encrypted key cannot be used")
