"""What proves to clients that this is the engine, and to the engine that a client may use it.

An authority of the engine's own signs one certificate; its key is thrown away at once, so that it
can never sign another. A renewed certificate therefore means nothing to copies of kubeconfig files
that clients have: so it holds for as long as an engine can be thought to, like the token, which
the certificate's key lies beside.
"""

import secrets
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from vcjob.controller.certificates import make_certificate, server_context, use_certificate
from vcjob.local.service.home import EngineHome, write_private

_VALID = timedelta(days=3650)
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
        context = server_context()
        self.show(context)
        return context

    def show(self, context: ssl.SSLContext) -> None:
        """Show the certificate to whoever connects from now on; raises UnusableCertificate."""
        use_certificate(context, self.certificate.read_bytes(), self.key.read_bytes())


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
        made = make_certificate(names, now, owner="vcjob engine", valid=_VALID)
        for path, content in (
            (authority, made.authority), (certificate, made.certificate), (key, made.key)
        ):  # fmt: skip
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
