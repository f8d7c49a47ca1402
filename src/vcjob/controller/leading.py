"""Which of several replicas works: the one that holds a Lease, and renews it in time.

Two replicas never work at once, whatever their clocks say. A holder counts the time of a renewal
from before it was sent, and stops its work ``renew_deadline`` seconds later if no further one was
confirmed; the others count from when they have seen the Lease change, which is later, and wait
``duration`` seconds. What is left between the two is for the work to end in. A process that was
stopped for longer than that (SIGSTOP, a virtual machine that was frozen) would do one more step
when it goes on: so whoever writes for the work asks ``may_write`` before each write. What was on
its way already names the version and the UID that it is meant for.

Source: client-go, package leaderelection; the defaults are Volcano's.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from vcjob.api.kinds import LEASE
from vcjob.api.types import Object
from vcjob.controller.backing_off import pause_after
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    ClusterError,
    Conflict,
    NotFound,
    Unavailable,
)
from vcjob.controller.leases import Expiry, LeaseSpec
from vcjob.core.times import micro_timestamp

_SECONDS_AFTER_RELEASE = 1
"""How long a Lease lasts that was given back, for those who wait although nobody holds it."""

_FIRST_DELAY_SECONDS = 0.25
_SILENCE_SECONDS = 60.0
"""A holder that renews nothing for so long is to be told of, however long its Lease lasts."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Terms(msgspec.Struct, frozen=True):
    """How long a Lease lasts, in seconds; raises ValueError for terms that cannot be kept.

    ``duration``: after its last renewal. ``renew_deadline``: for so long its holder goes on without
    one. ``retry_period``: between renewals, and between looks of those who wait.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    @property
    def longest_try(self) -> float:
        """How long (s) to wait for one answer: a connection that hangs leaves time for another."""
        return self.renew_deadline / 2

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                f"a lease of {self.duration:g} s must be longer than the deadline of its renewal "
                f"({self.renew_deadline:g} s), and that longer than the pause between two "
                f"({self.retry_period:g} s)"
            )


class Leader:
    """One of the replicas that may lead.

    Args:
        cluster: where the Lease is.
        namespace: of the Lease.
        name: of the Lease.
        identity: who we are; no other process, an earlier one included, may have the same.
        clock: the time.
        terms: how long the Lease lasts.
        jitter: a number from 0 to 1, drawn so that replicas do not ask all at once.

    Attributes:
        leads: whether we hold the Lease and may work.
        holder: who was last seen to hold it; empty if nobody.
        trouble: what is wrong with the Lease now, one sentence; empty if nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock | None = None,
        *,
        terms: Terms | None = None,
        jitter: random.Random | None = None,
    ) -> None:
        self._cluster = cluster
        self._namespace, self._name = namespace, name
        self.identity = identity
        self._clock = clock or SystemClock()
        self._terms = terms or Terms()
        self._jitter = jitter or random.Random()
        self.leads = False
        self.trouble = ""
        self._expiry = Expiry()
        self._ours: Object | None = None  # the Lease as we wrote it last, if an answer said so
        self._renewed = float("-inf")  # when the last confirmed write was sent (steady clock)
        self._unsure = False  # whether a write may have happened that no answer told of
        self._failures = 0

    @property
    def holder(self) -> str:
        """Who was last seen to hold the Lease; empty if nobody."""
        return self._expiry.seen.holder_identity

    @property
    def silent_lease(self) -> LeaseSpec | None:
        """The Lease, if another holds it and has not renewed it for longer than is usual.

        It lasts longer than we would have it last, so that nobody works for long.
        """
        usual = max(_SILENCE_SECONDS, 2 * self._terms.duration)
        silent = not self.leads and self._expiry.silence(self._clock.steady()) > usual
        return self._expiry.seen if silent else None

    @property
    def may_write(self) -> bool:
        """Whether the Lease is ours at this very moment, by the clock."""
        return self.leads and self._time_left() > 0

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the Lease, and run ``work`` as long as it is ours; then wait anew.

        Returns when ``work`` does, and raises what it raises. When the Lease is lost the work is
        cancelled. When this is cancelled, the work ends while the Lease is still renewed, and then
        the Lease is given back, so that another takes over at once.
        """
        while True:
            try:
                await self._acquire()
            except asyncio.CancelledError:
                if self._unsure:
                    await self._release()
                raise
            working = asyncio.create_task(work())
            renewing = asyncio.create_task(self._renew())
            try:
                await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
                ended = working.done()
            except asyncio.CancelledError:
                await self._stop(working, renewing)
                await self._release()
                raise
            await self._stop(working, renewing)
            if not renewing.cancelled():
                renewing.result()  # what was not foreseen ends us, after the work
            if ended:
                await self._release()
                return working.result()
            _log.warning("the Lease %s is lost: this replica waits for it again", self._shown)

    @property
    def _shown(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def _stop(self, working: asyncio.Task[None], renewing: asyncio.Task[None]) -> None:
        try:
            await _ended(working)
        finally:
            self.leads = False
            await _ended(renewing)

    async def _acquire(self) -> None:
        while True:
            held = await self._try(self._terms.longest_try)
            if held and self._time_left() > 0:
                self.leads = True
                _log.info("this replica leads: it holds the Lease %s", self._shown)
                return
            await self._clock.sleep(self._until_next_look())

    async def _renew(self) -> None:
        """Renew the Lease; returns when it is lost."""
        while (left := self._time_left()) > 0:
            if self._failures:
                pause = pause_after(
                    self._failures, self._jitter, first=_FIRST_DELAY_SECONDS,
                    longest=self._terms.retry_period,
                )  # fmt: skip
            else:
                pause = self._renewed + self._terms.retry_period - self._clock.steady()
            await self._clock.sleep(min(pause, left))
            seconds = min(self._time_left(), self._terms.longest_try)
            if seconds > 0 and await self._try(seconds) is False:
                _log.warning("%s has taken the Lease %s", self.holder or "nobody", self._shown)
                return
        why = self.trouble or "this process stood still for too long"
        _log.warning("the Lease %s could not be renewed in time: %s", self._shown, why)

    def _time_left(self) -> float:
        """For how long (s) the Lease may be counted as ours."""
        return self._renewed + self._terms.renew_deadline - self._clock.steady()

    def _until_next_look(self) -> float:
        pause = self._terms.retry_period * (1 - self._jitter.random() / 4)
        left = self._expiry.at - self._clock.steady()
        return min(pause, left) if left > 0 else pause

    async def _try(self, seconds: float) -> bool | None:
        """Take or renew the Lease within ``seconds``; whether it is ours, None if nobody can tell.

        What went wrong is kept as ``trouble``.
        """
        try:
            held = await self._within(seconds, self._take_or_renew())
        except ClusterError as error:
            self._failures += 1
            if not isinstance(error, Conflict | AlreadyExists):  # another was faster: no trouble
                self._tell(f"the Lease {self._shown} cannot be had: {error}")
            return None
        self._failures = 0
        self.trouble = ""
        return held

    def _tell(self, trouble: str) -> None:
        if trouble != self.trouble:
            _log.warning("%s", trouble)
        self.trouble = trouble

    async def _take_or_renew(self) -> bool:
        """One attempt; whether the Lease is ours now. Raises ClusterError."""
        lease = self._ours
        if lease is None:
            lease = await self._look()
            others = self.holder != self.identity
            if others and (self.leads or self._clock.steady() < self._expiry.at):
                return False
        self._ours, self._unsure = None, True  # until an answer comes: look before the next write
        sent = self._clock.steady()
        stored = await self._write(lease, self._spec(lease))
        self._ours, self._unsure, self._renewed = stored, False, sent
        self._expiry.look(stored, sent)
        return True

    async def _look(self) -> Object | None:
        try:
            lease = await self._cluster.get(LEASE, self._namespace, self._name)
        except NotFound:
            lease = None
        self._expiry.look(lease, self._clock.steady())
        return lease

    async def _write(self, lease: Object | None, spec: Object) -> Object:
        if lease is None:
            metadata = {"namespace": self._namespace, "name": self._name}
            return await self._cluster.create(LEASE, {"metadata": metadata, "spec": spec})
        return await self._cluster.patch(
            LEASE,
            self._namespace,
            self._name,
            {"spec": spec},
            resource_version=lease["metadata"]["resourceVersion"],
        )

    def _spec(self, lease: Object | None) -> Object:
        now = micro_timestamp(self._clock.now())
        spec: Object = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._terms.duration),
            "renewTime": now,
        }
        known = self._expiry.seen  # also of a Lease that somebody has deleted
        if lease is None or known.holder_identity != self.identity:
            spec["acquireTime"] = now
            another = bool(known.renew_time) and known.holder_identity != self.identity
            spec["leaseTransitions"] = known.lease_transitions + another
        return spec

    async def _release(self) -> None:
        """Give the Lease back, if it is ours; where that fails it runs out by itself."""
        lease, self._ours, self._unsure = self._ours, None, False
        self._renewed = float("-inf")
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": _SECONDS_AFTER_RELEASE,
            "renewTime": micro_timestamp(self._clock.now()),
        }
        try:
            if lease is None:
                lease = await self._within(self._terms.retry_period, self._look())
            if lease is None or LeaseSpec.of(lease).holder_identity != self.identity:
                return
            stored = await self._within(self._terms.retry_period, self._write(lease, spec))
        except ClusterError as error:
            _log.warning("the Lease %s could not be given back: %s", self._shown, error)
            return
        self._expiry.look(stored, self._clock.steady())
        _log.info("this replica has given back the Lease %s", self._shown)

    async def _within(self, seconds: float, call: Coroutine[Any, Any, T]) -> T:
        """The outcome of a call; raises Unavailable if it does not come in time."""
        calling = asyncio.create_task(call)
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({calling, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                raise Unavailable(f"the API server did not answer within {seconds:.1f} s")
            return calling.result()
        finally:
            sleeping.cancel()
            await _ended(calling)


async def _ended(task: "asyncio.Task[Any] | asyncio.Future[Any]") -> None:
    """Cancel a task and return when it has ended, however."""
    task.cancel()
    await asyncio.wait({task})
