"""The certificate of an engine that runs for longer than it holds."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vcjob.api.errors import VcjobError
from vcjob.local.service.credentials import Credentials, credentials
from vcjob.local.service.home import EngineHome
from vcjob.local.service.renewing import CredentialsKeeper

NOW = datetime.now(UTC)
LATE = NOW + timedelta(days=3600)


class Kept:
    """A keeper of a server's certificate, and what it told."""

    def __init__(self, directory: Path, tell: Callable[[Credentials], None] | None = None) -> None:
        home = EngineHome(directory / "engine")
        home.make()
        self.first = credentials(home, (), NOW)
        self.context = self.first.server_context()
        self.told: list[Credentials] = []
        self.keeper = CredentialsKeeper(
            home, (), self.context, self.first, tell or self.told.append
        )

    async def shown(self) -> str:
        """The certificate that a client sees."""
        client = ssl.create_default_context()
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        listening = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=self.context)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
            der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            await reader.read()
            writer.close()
            await writer.wait_closed()
        return ssl.DER_cert_to_PEM_cert(der).strip()


def test_as_long_as_it_holds_nothing_changes(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    before = kept.first.certificate.read_text().strip()
    kept.keeper.renew(NOW + timedelta(days=365))
    assert (kept.told, asyncio.run(kept.shown())) == ([], before)


def test_before_its_end_a_new_one_is_shown_and_clients_are_told_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    before = kept.first.certificate.read_text().strip()
    kept.keeper.renew(LATE)
    kept.keeper.renew(LATE)
    (told,) = kept.told
    assert told.authority != kept.first.authority
    assert told.token == kept.first.token
    shown = asyncio.run(kept.shown())
    assert shown == told.certificate.read_text().strip() != before


def test_clients_that_could_not_be_told_are_told_at_the_next_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Credentials] = []

    def tell(renewed: Credentials) -> None:
        if not heard:
            heard.append(renewed)
            raise VcjobError("the file is locked")
        heard.append(renewed)

    kept = Kept(tmp_path, tell)
    for _ in range(3):
        kept.keeper.renew(LATE)
    assert len(heard) == 2
    assert "the file is locked" in caplog.text
