"""A certificate that the administrator gives in files: taken anew when they change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vcjob.admission.certificates import CERTIFICATE, LOOKED_AT_EVERY
from vcjob.controller.certificates import (
    UnusableCertificate,
    is_for,
    read_certificate,
    server_context,
    use_certificate,
)
from vcjob.controller.clock import Clock
from vcjob.controller.readiness import Readiness

if TYPE_CHECKING:
    from cryptography import x509

_TOLD_BEFORE = timedelta(days=30)


class GivenCertificate:
    """The certificate in a file, with its key in another; ``context`` shows it.

    Files are compared by content: those of a mounted Secret change as a link moves.

    Args:
        certificate, key: the files.
        host: the name by which API servers call us.
        readiness: told of what is wrong.
        clock: the time.
    """

    def __init__(
        self, certificate: Path, key: Path, host: str, readiness: Readiness, clock: Clock
    ) -> None:
        self.context = server_context()
        self._files = (certificate, key)
        self._host = host
        self._readiness = readiness
        self._clock = clock
        self._given: tuple[bytes, bytes] | None = None
        self._shown: x509.Certificate | None = None

    async def keep(self) -> None:
        """Look at the files again and again until cancelled."""
        while True:
            self.look()
            await self._clock.sleep_until(self._clock.now() + LOOKED_AT_EVERY)

    def look(self) -> None:
        """Show what the files hold now; what is wrong with it is told in the readiness."""
        trouble = ""
        try:
            self._take()
        except OSError as error:
            trouble = f"{error.filename or 'the certificate'} cannot be read: {error.strerror}"
        except UnusableCertificate as error:
            trouble = str(error)
        if self._shown is None:
            self._readiness.fail(CERTIFICATE, trouble)
        else:
            self._tell(self._shown, trouble)

    def _take(self) -> None:
        """Show what the files hold; raises OSError and UnusableCertificate."""
        certificate, key = (file.read_bytes() for file in self._files)
        if (certificate, key) == self._given:
            return
        try:
            read = read_certificate(certificate)
        except UnusableCertificate as error:
            raise UnusableCertificate(f"{self._files[0]}: {error}") from error
        try:
            use_certificate(self.context, certificate, key)
        except UnusableCertificate as error:
            raise UnusableCertificate(f"{' and '.join(map(str, self._files))}: {error}") from error
        self._given, self._shown = (certificate, key), read

    def _tell(self, shown: "x509.Certificate", trouble: str) -> None:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        begins, expires = shown.not_valid_before_utc, shown.not_valid_after_utc
        another = f"put another into {self._files[0]}"
        if now >= expires:
            self._readiness.fail(CERTIFICATE, f"it has expired on {expires:%Y-%m-%d}: {another}")
        elif now < begins:
            said = f"it is valid from {begins:%Y-%m-%d %H:%M} UTC on only: {another}"
            self._readiness.fail(CERTIFICATE, said)
        elif trouble:
            self._readiness.meet(CERTIFICATE, f"{trouble}; the one before is shown", warn=True)
        elif not is_for(shown, self._host):
            said = f"it is not for {self._host}, by which API servers call the Service: {another}"
            self._readiness.meet(CERTIFICATE, said, warn=True)
        elif now >= expires - _TOLD_BEFORE:
            self._readiness.meet(CERTIFICATE, f"expires on {expires:%Y-%m-%d}: renew it", warn=True)
        else:
            self._readiness.meet(CERTIFICATE, f"valid until {expires:%Y-%m-%d}")
