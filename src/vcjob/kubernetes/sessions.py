"""aiohttp's sessions towards a server, one for each set of certificates that it is reached with.

Certificates are of a connection, not of a request: when they change, requests to come go through
other connections, and those under way, watches for example, keep theirs.
"""

from typing import Any

import aiohttp
import msgspec

from vcjob import __version__
from vcjob.kubernetes.credentials import Credential, Credentials
from vcjob.kubernetes.errors import KubeconfigError, NoCredentials
from vcjob.kubernetes.routes import is_loopback, lasting_socket, proxy_of
from vcjob.kubernetes.server import Server
from vcjob.kubernetes.socks import is_socks, socks_connector
from vcjob.kubernetes.tls import expired, tls_context

CONNECT_SECONDS = 10.0
_MOST = 2


class Sessions:
    """Sessions with the current credentials; ``middlewares`` are aiohttp's, for all of them.

    Raises KubeconfigError for a proxy that cannot be used.
    """

    def __init__(
        self, server: Server, credentials: Credentials, *middlewares: aiohttp.ClientMiddlewareType
    ) -> None:
        self._server = server
        self._credentials = credentials
        self._middlewares = middlewares
        self._proxy = proxy_of(server)
        self._by_certificates: dict[Credential, aiohttp.ClientSession] = {}
        self._last = Credential()
        self._headers = {"User-Agent": f"vcjob/{__version__}"}
        if is_loopback(server.url):
            self._headers["Accept-Encoding"] = "identity"  # packing costs more than it saves here

    @property
    def route(self) -> dict[str, Any]:
        """What each request says of its way to the server."""
        proxy = None if is_socks(self._proxy) else self._proxy  # that is the session's matter
        return {"proxy": proxy, "server_hostname": self._server.tls_name or None}

    def expired(self) -> str:
        """That our certificate has expired, as the end of a sentence; empty if it has not."""
        return expired(self._last)

    async def current(self) -> tuple[aiohttp.ClientSession, Credential]:
        """A session with the certificates of the current credential, and that credential.

        Raises NoCredentials.
        """
        try:
            credential = await self._credentials.current()
        except KubeconfigError as error:  # now; later it may be had
            raise NoCredentials(str(error)) from error
        certificates = msgspec.structs.replace(credential, token="")
        if certificates not in self._by_certificates:
            try:
                self._by_certificates[certificates] = self._new(certificates)
            except KubeconfigError as error:  # one of two files is not written yet, say
                self._credentials.refuse(credential)
                raise NoCredentials(str(error)) from error
            await self._close_oldest()
        self._last = certificates
        return self._by_certificates[certificates], credential

    async def close(self) -> None:
        """Close every connection."""
        for session in self._by_certificates.values():
            await session.close()
        self._by_certificates.clear()

    async def _close_oldest(self) -> None:
        """What the certificates before are used for may go on; with older ones it ends."""
        while len(self._by_certificates) > _MOST:
            await self._by_certificates.pop(next(iter(self._by_certificates))).close()

    def _new(self, certificates: Credential) -> aiohttp.ClientSession:
        secure = self._server.url.startswith("https:")
        settings: dict[str, Any] = {
            "limit": 0,  # callers bound what they do at once; watches must not wait for each other
            "ssl": tls_context(self._server, certificates) if secure else True,
        }
        connector = (
            socks_connector(self._proxy, self._server.tls_name, **settings)
            if self._proxy and is_socks(self._proxy)
            else aiohttp.TCPConnector(socket_factory=lasting_socket, **settings)
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            middlewares=self._middlewares,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        )
