"""A certificate that is given in files: shown, watched, its end told."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vcjob.admission.given import GivenCertificate
from vcjob.controller.certificates import VALID, as_pem, make_certificate
from vcjob.controller.readiness import Readiness

START = datetime(2030, 1, 1, tzinfo=UTC)
NONE = "there is no certificate in PEM"


class Time:
    def __init__(self) -> None:
        self.moment = START

    def now(self) -> float:
        return self.moment.timestamp()

    async def sleep_until(self, when: float) -> None:
        await asyncio.sleep(0)


class Given:
    def __init__(self, directory: Path) -> None:
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"
        self.time, self.readiness = Time(), Readiness()
        self.given = GivenCertificate(
            self.certificate, self.key, "a.b.svc", self.readiness, self.time
        )

    def write(self, moment: datetime = START, host: str = "a.b.svc") -> bytes:
        made = make_certificate((host,), moment, owner="a test")
        self.certificate.write_bytes(made.certificate)
        self.key.write_bytes(made.key)
        return made.certificate

    @property
    def shown(self) -> bytes:
        assert self.given._shown is not None
        return as_pem([self.given._shown])

    def look(self) -> str:
        self.given.look()
        return self.readiness.text()


@pytest.fixture
def files(tmp_path: Path) -> Given:
    return Given(tmp_path)


def test_it_is_shown_as_long_as_it_holds(files: Given) -> None:
    first = files.write()
    assert "certificate: valid until 2031-01-01" in files.look()
    assert files.shown == first
    files.time.moment = START + VALID - timedelta(days=29)
    assert "certificate: expires on 2031-01-01: renew it" in files.look()
    assert files.readiness.ready
    files.time.moment = START + VALID
    assert "certificate: it has expired on 2031-01-01" in files.look()
    assert not files.readiness.ready
    second = files.write(files.time.moment)
    files.look()
    assert files.readiness.ready
    assert files.shown == second


def test_what_cannot_be_used_leaves_the_one_before(files: Given) -> None:
    first = files.write()
    files.look()
    files.key.write_bytes(b"half of a new k")
    assert "does not fit its key, or they are not PEM; the one before is shown" in files.look()
    assert files.readiness.ready
    files.certificate.unlink()
    assert "tls.crt cannot be read: No such file or directory; the one before" in files.look()
    assert files.shown == first


def test_without_any_it_is_not_ready(files: Given) -> None:
    assert "tls.crt cannot be read: No such file or directory" in files.look()
    assert not files.readiness.ready
    files.write()
    files.look()
    assert files.readiness.ready


@pytest.mark.parametrize("label", [b"PRIVATE KEY", b"TRUSTED CERTIFICATE"])
def test_what_openssl_takes_but_is_no_certificate_is_said(files: Given, label: bytes) -> None:
    """As when both files are mixed up."""
    certificate, key = files.write(), files.key.read_bytes()
    if label in key:
        files.certificate.write_bytes(key)
        files.key.write_bytes(certificate)
    else:
        files.certificate.write_bytes(certificate.replace(b"CERTIFICATE", label))
    assert files.look() == f"not ready\ncertificate: {files.certificate}: {NONE}\n"


def test_empty_files_are_said(files: Given) -> None:
    files.certificate.touch()
    files.key.touch()
    assert files.look() == f"not ready\ncertificate: {files.certificate}: {NONE}\n"


def test_one_that_api_servers_will_not_take_is_said(files: Given) -> None:
    files.write(host="*.b.svc")
    assert "certificate: valid until" in files.look()
    files.write(host="b.svc")
    assert "certificate: it is not for a.b.svc, by which API servers call" in files.look()
    assert files.readiness.ready, "a configuration may name another address"
    files.write(START + timedelta(days=1))
    assert "certificate: it is valid from 2030-01-01 23:00 UTC on only: put" in files.look()
    assert not files.readiness.ready
