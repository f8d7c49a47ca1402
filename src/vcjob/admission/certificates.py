"""The webhook's own certificate: kept in a Secret for all replicas, renewed, told to API servers.

Looked at every few seconds by name, not watched: a Role can allow a single Secret to be read, but
watching it by its name takes a selector that few other things need. What another replica or a
person changes is therefore noticed after ``LOOKED_AT_EVERY`` at most.
"""

import base64
import binascii
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from vcjob.admission.configurations import CONFIGURATION_NAME, leads_to, with_authority
from vcjob.admission.rotation import Kept, data_of, decide, expiry, is_usable, kept_of
from vcjob.api.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Object
from vcjob.controller.certificates import Made, make_certificate, server_context, use_certificate
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    ClusterError,
    Conflict,
    NotFound,
)
from vcjob.controller.readiness import Readiness

SECRET_NAME = "vcjob-webhook-certificate"
LOOKED_AT_EVERY = 10.0
"""Seconds."""
KNOWN_AFTER = 60.0
"""Seconds after which every API server has surely seen what was written into its configuration."""

CERTIFICATE, CONFIGURATIONS = "certificate", "configurations"
"""What is told in the readiness."""
_ATTEMPTS = 5
_CONFIGURATIONS = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)

_log = logging.getLogger(__name__)


class OwnCertificate:
    """The certificate of a webhook that makes it itself. ``context`` shows it to whoever connects.

    Args:
        cluster: where Secret and webhook configurations are.
        namespace: of the Secret and the Service.
        service: the Service by which API servers reach the webhook.
        readiness: told of what is wrong.
        clock: the time.
        make: makes a certificate for names, valid from a moment on.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        service: str,
        readiness: Readiness,
        clock: Clock,
        make: Callable[[tuple[str, ...], datetime], Made] | None = None,
    ) -> None:
        self.context = server_context()
        self._cluster = cluster
        self._namespace, self._service = namespace, service
        self._readiness = readiness
        self._clock = clock
        self._make = make or _make
        self._kept: Kept | None = None
        self._shown = b""
        self._known, self._known_since = b"", 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which API servers and others in the cluster call the Service."""
        within = f"{self._service}.{self._namespace}"
        return (f"{within}.svc", f"{within}.svc.cluster.local", within)

    async def keep(self) -> None:
        """Keep the certificate up until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep_until(self._clock.now() + LOOKED_AT_EVERY)

    async def look(self) -> None:
        """Do what is to be done now; what goes wrong is told in the readiness."""
        try:
            await self._look()
        except OSError as error:  # no descriptor is left to load a certificate
            self._fail(
                CERTIFICATE, f"it cannot be loaded: {error.strerror}", still_good=bool(self._shown)
            )

    async def _look(self) -> None:
        try:
            self._kept = await self._agree()
        except ClusterError as error:
            self._fail(CERTIFICATE, str(error), still_good=self._is_good())
            return
        # API servers are told first: they must never be shown what they do not know.
        try:
            await self._tell(self._kept)
        except ClusterError as error:
            told = self._known == self._kept.authorities
            self._fail(CONFIGURATIONS, str(error), still_good=told)
        self._show(self._kept)

    def _fail(self, condition: str, sentence: str, *, still_good: bool) -> None:
        """An API server that is away for a moment must find us ready when it is back."""
        if still_good:
            self._readiness.meet(condition, sentence, warn=True)
        else:
            self._readiness.fail(condition, sentence)

    def _is_good(self) -> bool:
        return self._kept is not None and is_usable(self._kept, self.names, self._moment())

    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    async def _agree(self) -> Kept:
        """What all replicas keep from now on: ours if nobody was faster."""
        for _ in range(_ATTEMPTS):
            secret = await self._read()
            found = _kept_in(secret)
            useful = found is not None and is_usable(found, self.names, self._moment())
            # What was deleted or spoilt is made again as it was.
            wanted = self._decide(self._kept if self._kept and not useful else found)
            if wanted == found:
                return wanted
            try:
                await self._write(secret, wanted)
            except (AlreadyExists, Conflict):
                continue  # another replica was faster: what it wrote holds
            _log.info("the Secret %s/%s has been written", self._namespace, SECRET_NAME)
            return wanted
        raise Conflict(
            f"the Secret {self._namespace}/{SECRET_NAME} is changed by somebody all the time"
        )

    def _decide(self, kept: Kept | None) -> Kept:
        known_for = self._clock.now() - self._known_since
        known = kept is not None and self._known == kept.authorities and known_for >= KNOWN_AFTER
        moment = self._moment()
        return decide(kept, self.names, moment, known, lambda: self._make(self.names, moment))

    async def _read(self) -> Object | None:
        try:
            return await self._cluster.get(SECRET, self._namespace, SECRET_NAME)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, kept: Kept) -> None:
        data: Object = {
            key: base64.b64encode(value).decode() for key, value in data_of(kept).items()
        }
        if secret is None:
            metadata = {
                "name": SECRET_NAME,
                "namespace": self._namespace,
                "labels": {"app.kubernetes.io/name": "vcjob", MANAGED_BY: MANAGED_BY_VALUE},
            }
            made = {"metadata": metadata, "type": "kubernetes.io/tls", "data": data}
            await self._cluster.create(SECRET, made)
            return
        gone = {key: None for key in secret.get("data") or {} if key not in data}
        await self._cluster.patch(
            SECRET,
            self._namespace,
            SECRET_NAME,
            {"data": {**gone, **data}},
            resource_version=secret["metadata"]["resourceVersion"],
        )

    async def _tell(self, kept: Kept) -> None:
        """Have both configurations hold the authorities; says so when that is of no use."""
        missing, elsewhere = [], []
        changed = self._known != kept.authorities
        for kind in _CONFIGURATIONS:
            try:
                configuration, written = await self._tell_in(kind, kept)
            except NotFound:
                missing.append(kind.kind)
                continue
            changed |= written
            if not leads_to(configuration, self._namespace, self._service):
                elsewhere.append(kind.kind)
        if changed:
            self._known, self._known_since = kept.authorities, self._clock.now()
        self._tell_of_use(missing, elsewhere)

    def _tell_of_use(self, missing: list[str], elsewhere: list[str]) -> None:
        wrong = []
        if missing:
            wrong.append(f"there is no {' and no '.join(missing)} {CONFIGURATION_NAME}")
        if elsewhere:
            wrong.append(
                f"nothing in the {' and the '.join(elsewhere)} {CONFIGURATION_NAME} leads to the "
                f"Service {self._namespace}/{self._service}"
            )
        said = (
            f"{' and '.join(wrong)}: API servers do not ask this webhook; vcjob manifests prints "
            "them"
            if wrong
            else ""
        )
        self._readiness.meet(CONFIGURATIONS, said, warn=bool(wrong))

    async def _tell_in(self, kind: Kind, kept: Kept) -> tuple[Object, bool]:
        """The configuration, and whether something had to be written."""
        authority = base64.b64encode(kept.authorities).decode()
        for _ in range(_ATTEMPTS):
            configuration = await self._cluster.get(kind, "", CONFIGURATION_NAME)
            webhooks = with_authority(configuration, authority, self._namespace, self._service)
            if webhooks is None:
                return configuration, False
            version = configuration["metadata"]["resourceVersion"]
            patch = {"webhooks": webhooks}
            try:
                await self._cluster.patch(
                    kind, "", CONFIGURATION_NAME, patch, resource_version=version
                )
            except Conflict:
                continue
            _log.info("%s %s: caBundle written", kind, CONFIGURATION_NAME)
            return configuration, True
        raise Conflict(f"the {kind} {CONFIGURATION_NAME} is changed by somebody all the time")

    def _show(self, kept: Kept) -> None:
        if kept.certificate != self._shown:
            use_certificate(self.context, kept.certificate, kept.key)
            self._shown = kept.certificate
        until = expiry(kept).strftime("%Y-%m-%d")
        renewing = "; the next one is about to take its place" if kept.next_certificate else ""
        self._readiness.meet(CERTIFICATE, f"valid until {until}{renewing}")


def _make(names: tuple[str, ...], moment: datetime) -> Made:
    return make_certificate(names, moment, owner="vcjob webhook")


def _kept_in(secret: Object | None) -> Kept | None:
    """What a Secret holds; None if it is not there or holds nothing."""
    data = (secret or {}).get("data") or {}
    kept = kept_of({key: _decoded(value) for key, value in data.items()})
    return kept if kept.certificate or kept.next_certificate else None


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError):
        return b""
