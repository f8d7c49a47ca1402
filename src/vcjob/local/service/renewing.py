"""A certificate that comes to its end while the engine runs: renewed, shown, told to clients."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from vcjob.api.errors import VcjobError
from vcjob.local.service.credentials import Credentials, credentials
from vcjob.local.service.home import EngineHome

_EVERY_SECONDS = 3600.0

_log = logging.getLogger(__name__)


class CredentialsKeeper:
    """Keeps a server's certificate valid.

    Args:
        home: where it is kept.
        hosts: what it is for, as for ``credentials``.
        context: TLS settings of the server that shows it.
        shown: what is shown now.
        tell: writes kubeconfig files with what is shown from now on; may raise VcjobError.
    """

    def __init__(
        self,
        home: EngineHome,
        hosts: Iterable[str],
        context: ssl.SSLContext,
        shown: Credentials,
        tell: Callable[[Credentials], None],
    ) -> None:
        self._home = home
        self._hosts = tuple(hosts)
        self._context = context
        self._shown = shown
        self._told = shown
        self._tell = tell

    async def run(self) -> None:
        """Look every hour, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            self.renew(datetime.now(UTC))

    def renew(self, now: datetime) -> None:
        """Renew it if it is time; what goes wrong is logged, and tried again at the next call."""
        try:
            current = credentials(self._home, self._hosts, now)
            if current != self._shown:
                current.show(self._context)
                self._shown = current
                _log.warning(
                    "the certificate is renewed; copies of the kubeconfig file have to be made anew"
                )
            if self._shown != self._told:
                self._tell(self._shown)
                self._told = self._shown
        except (VcjobError, OSError) as error:
            _log.warning("the certificate cannot be renewed: %s", error)
