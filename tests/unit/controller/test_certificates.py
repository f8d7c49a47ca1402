"""Certificates: what is made can be read and shown, what is wrong is said and changes nothing."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from vcjob.controller.certificates import (
    BACKDATED,
    VALID,
    Made,
    UnusableCertificate,
    as_pem,
    is_signed_by,
    load_chain,
    make_certificate,
    names_of,
    read_certificate,
    read_certificates,
    server_context,
    use_certificate,
)

NOW = datetime.now(UTC).replace(microsecond=0)
NAMES = ("localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def made() -> Made:
    return make_certificate(NAMES, NOW, owner="a test")


@pytest.fixture(scope="module")
def other() -> Made:
    return make_certificate(NAMES, NOW, owner="a test")


def test_a_certificate_says_whose_it_is_and_how_long(made: Made) -> None:
    certificate = read_certificate(made.certificate)
    assert names_of(certificate) == set(NAMES)
    assert certificate.not_valid_before_utc == NOW - BACKDATED
    assert certificate.not_valid_after_utc == NOW + VALID


def test_only_its_own_authority_has_signed_it(made: Made, other: Made) -> None:
    certificate = read_certificate(made.certificate)
    assert is_signed_by(certificate, read_certificate(made.authority))
    assert not is_signed_by(certificate, read_certificate(other.authority))


def test_an_authority_of_an_unknown_kind_has_signed_nothing(made: Made) -> None:
    strange = changed(
        made.authority, bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d027f")
    )
    assert not is_signed_by(read_certificate(made.certificate), read_certificate(strange))


def test_a_certificate_of_an_unknown_version_is_said(made: Made) -> None:
    strange = changed(made.certificate, bytes.fromhex("a003020102"), bytes.fromhex("a003020109"))
    with pytest.raises(UnusableCertificate, match="no certificate in PEM"):
        read_certificate(strange)


def changed(certificate: bytes, before: bytes, after: bytes) -> bytes:
    """A certificate with other bytes in it."""
    encoded = ssl.PEM_cert_to_DER_cert(certificate.decode())
    assert before in encoded
    return ssl.DER_cert_to_PEM_cert(encoded.replace(before, after, 1)).encode()


def test_several_authorities_are_one_text(made: Made, other: Made) -> None:
    both = made.authority + other.authority
    assert as_pem(read_certificates(both)) == both


@pytest.mark.parametrize("junk", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_no_certificate_is_said(junk: bytes) -> None:
    with pytest.raises(UnusableCertificate, match="no certificate in PEM"):
        read_certificates(junk)


def test_connections_from_now_on_are_shown_another_certificate(made: Made, other: Made) -> None:
    context = server_context()
    use_certificate(context, made.certificate, made.key)
    asyncio.run(greet(context, made))
    use_certificate(context, other.certificate, other.key)
    asyncio.run(greet(context, other))


def test_a_certificate_that_cannot_be_used_changes_nothing(made: Made, other: Made) -> None:
    context = server_context()
    use_certificate(context, made.certificate, made.key)
    for certificate, key in (
        (other.certificate, made.key), (made.certificate, b""), (b"", b""), (b"junk", b"junk")
    ):  # fmt: skip
        with pytest.raises(UnusableCertificate):
            use_certificate(context, certificate, key)
    asyncio.run(greet(context, made))


def test_an_encrypted_key_is_refused_without_a_question(made: Made) -> None:
    from cryptography.hazmat.primitives import serialization

    private = serialization.load_pem_private_key(made.key, None)
    encrypted = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(UnusableCertificate):
        load_chain(server_context(), made.certificate + encrypted)


def test_old_versions_of_tls_are_refused(made: Made) -> None:
    context = server_context()
    use_certificate(context, made.certificate, made.key)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_an_expired_certificate_is_refused_by_clients() -> None:
    old = make_certificate(NAMES, NOW - VALID - timedelta(days=1), owner="a test")
    context = server_context()
    use_certificate(context, old.certificate, old.key)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        asyncio.run(greet(context, old))


async def greet(context: ssl.SSLContext, authority: Made) -> None:
    """Shake hands as a client that trusts one authority."""

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    trusting = ssl.create_default_context(cadata=authority.authority.decode())
    async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=context) as listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        assert await reader.read() == b""
        writer.close()
