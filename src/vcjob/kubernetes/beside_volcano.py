"""Never two controllers for the same Jobs: Volcano's own, vc-controller-manager, goes first.

It holds the Lease ``vc-controller-manager`` in its namespace while it works. As long as
somebody renews that Lease we decide nothing (``StandingBack``), unless we were told to take over:
then we hold the Lease ourselves (``TakingOver``), and Volcano's controller waits for it as any
replica of it does. A controller of Volcano that runs without leader election has no Lease and
cannot be noticed.

Without the right to read that Lease we decide nothing either: two controllers that each think the
other's pods are surplus do harm that waiting does not.
"""

import asyncio
import logging
import time
from typing import Protocol

from vcjob.api.errors import VcjobError
from vcjob.api.kinds import LEASE
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
)
from vcjob.controller.leases import LeaseSpec
from vcjob.controller.readiness import Readiness
from vcjob.core.times import micro_timestamp, seconds_of
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.installing.installation import VOLCANO_NAMESPACE
from vcjob.kubernetes.lease_sightings import Holding, Sightings

CONTROLLER_LEASE = "vc-controller-manager"
OUR_PREFIX = "vcjob-operator_"
"""How holders begin that are operators of ours."""

_DURATION_SECONDS = 15.0
_LOOK_SECONDS = 2.0
"""Between looks at the Lease, or renewals of it; as often as Volcano renews it."""

_log = logging.getLogger(__name__)


class VolcanoRuns(VcjobError):
    """Volcano's controller is at work, and nobody told us to take over."""

    def __init__(self, holder: str, namespace: str = VOLCANO_NAMESPACE) -> None:
        super().__init__(
            f"Volcano's controller works on this cluster: {holder} holds the Lease "
            f"{_shown(namespace)} and renews it. {_cure(namespace)}"
        )


class Beside(Protocol):
    """How we get on with Volcano's controller."""

    async def clear(self) -> None:
        """Return when we may decide about Jobs."""

    async def taken(self) -> None:
        """Return when we may no longer."""


class StandingBack:
    """Work only while nobody of Volcano renews its Lease.

    Args:
        cluster: where the Lease is.
        readiness: gets what is wrong.
        pace: seconds between looks.
        namespace: Volcano's.
    """

    def __init__(
        self,
        cluster: Cluster,
        readiness: Readiness,
        pace: float = _LOOK_SECONDS,
        *,
        namespace: str = VOLCANO_NAMESPACE,
    ) -> None:
        self._cluster = cluster
        self._readiness = readiness
        self._pace = pace
        self._namespace = namespace
        self._shown = _shown(namespace)
        self._sightings = Sightings()

    async def refuse_to_start(self) -> None:
        """Return when Volcano's controller is known not to run; raises VolcanoRuns if it does."""
        await self._wait_until_clear(refuse=True)

    async def clear(self) -> None:
        """Return when nobody of Volcano renews the Lease."""
        await self._wait_until_clear(refuse=False)

    async def _wait_until_clear(self, *, refuse: bool) -> None:
        while True:
            holding = await self._look()
            said = self._sightings.lease
            if holding in (Holding.FREE, Holding.ABANDONED):
                if self._readiness.of(Condition.VOLCANO):
                    _log.info("nobody renews the Lease %s: Jobs are ours", self._shown)
                self._readiness.meet(Condition.VOLCANO)
                return
            if holding is Holding.UNCERTAIN:
                self._readiness.fail(
                    Condition.VOLCANO,
                    f"{said.holder_identity} is named as holder of the Lease {self._shown}, "
                    f"renewed at {said.renew_time}; looking for {said.seconds:.0f} s whether it "
                    "still renews it",
                )
            elif holding is Holding.HELD:
                if refuse:
                    raise VolcanoRuns(said.holder_identity, self._namespace)
                self._readiness.fail(
                    Condition.VOLCANO,
                    f"Volcano's controller ({said.holder_identity}) holds the Lease {self._shown}: "
                    f"nothing is decided until it is gone. {_cure(self._namespace)}",
                )
            await asyncio.sleep(self._pace)

    async def taken(self) -> None:
        """Return when Volcano's controller has come, or that it has not can no longer be told."""
        while True:
            await asyncio.sleep(self._pace)
            try:
                lease = await read_lease(self._cluster, self._namespace, CONTROLLER_LEASE)
            except Forbidden:
                return
            except ClusterError as error:  # who cannot ask cannot change anything either
                _log.info("the Lease %s cannot be read: %s", self._shown, error)
                continue
            if self._note(lease) is Holding.HELD:
                return

    async def _look(self) -> Holding | None:
        """What is known of the Lease; None if it cannot be read."""
        try:
            lease = await read_lease(self._cluster, self._namespace, CONTROLLER_LEASE)
        except Forbidden as error:
            self._readiness.fail(
                Condition.VOLCANO,
                "whether Volcano's controller works cannot be told, and nothing is decided until "
                f'it can: grant the verb get on leases of namespace "{self._namespace}" ({error})',
            )
            return None
        except ClusterError as error:
            self._readiness.fail(Condition.SERVER, str(error))
            return None
        self._readiness.meet(Condition.SERVER)
        return self._note(lease)

    def _note(self, lease: Object | None) -> Holding:
        if is_ours(LeaseSpec.of(lease)):
            lease = None  # another of us took over; it and we share a Lease of our own
        return self._sightings.look(lease, asyncio.get_running_loop().time())


class TakingOver:
    """Hold the Lease of Volcano's controller, so that it waits.

    A controller whose Lease is taken goes on until it notices, at the latest when the Lease would
    have ended; so long we wait. The Lease is not given back at the end: it ends by itself soon
    after, and another replica of ours finds it still ours.

    Args:
        cluster: where the Lease is.
        readiness: gets what is wrong.
        identity: who we are.
        pace: seconds between renewals.
        duration: how long (s) the Lease lasts; Volcano's own default.
        namespace: Volcano's.
    """

    def __init__(
        self,
        cluster: Cluster,
        readiness: Readiness,
        identity: str,
        pace: float = _LOOK_SECONDS,
        duration: float = _DURATION_SECONDS,
        *,
        namespace: str = VOLCANO_NAMESPACE,
    ) -> None:
        self._cluster = cluster
        self._readiness = readiness
        self._holder = OUR_PREFIX + identity
        self._pace = pace
        self._duration = duration
        self._namespace = namespace
        self._shown = _shown(namespace)
        self._sightings = Sightings()

    async def clear(self) -> None:
        """Take the Lease, and return when whoever held it has certainly stopped."""
        loop = asyncio.get_running_loop()
        clear_at = 0.0
        while True:
            try:
                before = await self._hold()
            except ClusterError as error:
                self._readiness.fail(
                    Condition.VOLCANO, f"the Lease {self._shown} cannot be taken over: {error}"
                )
                await asyncio.sleep(self._pace)
                continue
            if before is not None:
                seconds = _still_to_wait(before)
                clear_at = loop.time() + seconds
                self._readiness.fail(
                    Condition.VOLCANO,
                    f"took the Lease {self._shown} over from {before.holder_identity}; waiting "
                    f"{seconds:.0f} s, by when Volcano's controller has noticed",
                )
            if loop.time() >= clear_at:
                self._readiness.meet(Condition.VOLCANO)
                return
            await asyncio.sleep(min(self._pace, max(clear_at - loop.time(), 0.0)))

    async def taken(self) -> None:
        """Keep the Lease; return when somebody else has it, or may have because we could not."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(self._pace)
            try:
                spec = LeaseSpec.of(
                    await read_lease(self._cluster, self._namespace, CONTROLLER_LEASE)
                )
                if spec.holder_identity and not is_ours(spec):
                    _log.warning("%s has taken the Lease %s", spec.holder_identity, self._shown)
                    return
                await self._hold()
                renewed = loop.time()
            except ClusterError as error:
                _log.warning("the Lease %s could not be renewed: %s", self._shown, error)
                if loop.time() - renewed > self._duration * 2 / 3:
                    return

    async def _hold(self) -> LeaseSpec | None:
        """Renew or take the Lease; what it said if it was taken from somebody who may be at work.

        Raises ClusterError. Where there is no namespace of Volcano there is nothing to hold.
        """
        lease = await read_lease(self._cluster, self._namespace, CONTROLLER_LEASE)
        if lease is None:
            metadata = {"name": CONTROLLER_LEASE, "namespace": self._namespace}
            try:
                await self._cluster.create(LEASE, {"metadata": metadata, "spec": self._spec(None)})
            except AlreadyExists as error:
                raise Conflict(f"the Lease {self._shown} has just been made") from error
            except NotFound:
                pass
            return None
        before = LeaseSpec.of(lease)
        await self._cluster.patch(
            LEASE,
            self._namespace,
            CONTROLLER_LEASE,
            {"spec": self._spec(before)},
            resource_version=lease["metadata"]["resourceVersion"],
        )
        return before if before.holder_identity != self._holder and _may_decide(before) else None

    def _spec(self, before: LeaseSpec | None) -> Object:
        now = micro_timestamp(time.time())
        spec: Object = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": max(int(self._duration), 1),
            "renewTime": now,
        }
        if before is None or before.holder_identity != self._holder:
            spec["leaseTransitions"] = before.lease_transitions + 1 if before else 0
        if before is None or not is_ours(before):
            spec["acquireTime"] = now  # when it became ours, whichever replica holds it
        return spec


def _shown(namespace: str) -> str:
    return f"{namespace}/{CONTROLLER_LEASE}"


def _cure(namespace: str) -> str:
    return (
        f"Stop it (kubectl -n {namespace} scale deployment volcano-controllers --replicas=0), or "
        "start with --take-over, which keeps it waiting"
    )


async def read_lease(cluster: Cluster, namespace: str, name: str) -> Object | None:
    """A Lease, None if there is none; raises ClusterError."""
    try:
        return await cluster.get(LEASE, namespace, name)
    except NotFound:
        return None


def is_ours(lease: LeaseSpec) -> bool:
    """Whether an operator of ours holds a Lease of Volcano's."""
    return lease.holder_identity.startswith(OUR_PREFIX)


def _may_decide(before: LeaseSpec) -> bool:
    """Whether Volcano's controller may not have noticed yet that the Lease is no longer its own."""
    return bool(before.holder_identity) and _still_to_wait(before) > 0


def _still_to_wait(before: LeaseSpec) -> float:
    """How long (s) to wait after the Lease was taken from ``before``.

    Another replica of ours may have taken it a moment ago; both of its times are by one clock.
    """
    if not is_ours(before):
        return before.seconds
    taken, renewed = seconds_of(before.acquire_time), seconds_of(before.renew_time)
    if taken is None or renewed is None:
        return 0.0
    return max(before.seconds - (renewed - taken), 0.0)
