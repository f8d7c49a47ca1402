"""A certificate that the administrator gives in files: taken anew when they change."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from vcjob.admission.certificates import CERTIFICATE, LOOKED_AT_EVERY
from vcjob.controller.certificates import (
    UnusableCertificate,
    read_certificate,
    server_context,
    use_certificate,
)
from vcjob.controller.clock import Clock
from vcjob.controller.readiness import Readiness

_TOLD_BEFORE = timedelta(days=30)


class GivenCertificate:
    """The certificate in a file, with its key in another; ``context`` shows it.

    Files are compared by content: those of a mounted Secret change as a link moves.
    """

    def __init__(self, certificate: Path, key: Path, readiness: Readiness, clock: Clock) -> None:
        self.context = server_context()
        self._files = (certificate, key)
        self._readiness = readiness
        self._clock = clock
        self._shown = (b"", b"")

    async def keep(self) -> None:
        """Look at the files again and again until cancelled."""
        while True:
            self.look()
            await self._clock.sleep_until(self._clock.now() + LOOKED_AT_EVERY)

    def look(self) -> None:
        """Show what the files hold now; what is wrong with it is told in the readiness."""
        trouble = ""
        try:
            certificate, key = (file.read_bytes() for file in self._files)
            if (certificate, key) != self._shown:
                use_certificate(self.context, certificate, key)
                self._shown = certificate, key
        except OSError as error:
            trouble = f"{error.filename} cannot be read: {error.strerror}"
        except UnusableCertificate as error:
            trouble = f"{' and '.join(map(str, self._files))}: {error}"
        if not self._shown[0]:
            self._readiness.fail(CERTIFICATE, trouble)
            return
        self._tell(trouble)

    def _tell(self, trouble: str) -> None:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        expires = read_certificate(self._shown[0]).not_valid_after_utc
        day = f"{expires:%Y-%m-%d}"
        if now >= expires:
            said = f"it has expired on {day}: put another into {self._files[0]}"
            self._readiness.fail(CERTIFICATE, said)
        elif trouble:
            self._readiness.meet(CERTIFICATE, f"{trouble}; the one before is shown", warn=True)
        else:
            soon = now >= expires - _TOLD_BEFORE
            said = f"expires on {day}: renew it" if soon else f"valid until {day}"
            self._readiness.meet(CERTIFICATE, said, warn=soon)
