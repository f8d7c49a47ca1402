"""Certificate and token: made once, checked by clients, renewed in time."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vcjob.local.service.credentials import Credentials, credentials
from vcjob.local.service.home import EngineHome

NOW = datetime.now(UTC)


@pytest.fixture
def home(tmp_path: Path) -> EngineHome:
    made = EngineHome(tmp_path / "engine")
    made.make()
    return made


def test_they_stay_until_the_certificate_is_old_or_for_other_hosts(home: EngineHome) -> None:
    first = credentials(home, (), NOW)
    assert credentials(home, (), NOW + timedelta(days=3000)) == first
    renewed = credentials(home, (), NOW + timedelta(days=3600))
    assert renewed.authority != first.authority
    assert renewed.token == first.token
    for_others = credentials(home, ("192.0.2.1",), NOW + timedelta(days=3600))
    assert for_others.authority != renewed.authority


@pytest.mark.parametrize("file", ["certificate.pem", "key.pem", "authority.pem", "token"])
def test_what_is_missing_is_made_anew(home: EngineHome, file: str) -> None:
    credentials(home, ())
    (home.path / file).unlink()
    assert credentials(home, ()).server_context()
    assert (home.path / file).read_text()


def test_files_are_the_users_alone(home: EngineHome) -> None:
    credentials(home, ())
    assert {path.stat().st_mode & 0o777 for path in home.path.iterdir() if path.is_file()} == {
        0o600
    }


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "192.0.2.1"])
def test_strict_clients_take_the_certificate_for_the_hosts_it_is_for(
    home: EngineHome, host: str
) -> None:
    made = credentials(home, ("192.0.2.1",))
    assert asyncio.run(_shake_hands(made, made.authority, host)) == "hello"


def test_clients_refuse_other_hosts_and_other_engines(home: EngineHome, tmp_path: Path) -> None:
    made = credentials(home, ())
    other = EngineHome(tmp_path / "other")
    other.make()
    stranger = credentials(other, ())
    for authority, host in ((made.authority, "192.0.2.1"), (stranger.authority, "127.0.0.1")):
        with pytest.raises(ssl.SSLCertVerificationError):
            asyncio.run(_shake_hands(made, authority, host))


async def _shake_hands(server: Credentials, authority: str, host: str) -> str:
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    listening = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server.server_context())
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=host
        )
        said = await reader.read()
        writer.close()
        return said.decode()
