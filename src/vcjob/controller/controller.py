"""The controller of Jobs: watches in, plans made and carried out, until it is cancelled."""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from vcjob.api.kinds import JOB, PRIORITY_CLASS, SECRET, Kind
from vcjob.api.types import Job, Object
from vcjob.controller.applying import Applier, InTheWay
from vcjob.controller.backing_off import pause_after
from vcjob.controller.caches import Caches
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import Cluster, ClusterError, EventType, Forbidden, Invalid, NotFound
from vcjob.controller.garbage import rarely_collected
from vcjob.controller.key_pairs import MakeKeyPair, make_key_pair, stored_pairs
from vcjob.controller.log_context import current_job
from vcjob.controller.observers import Observers
from vcjob.controller.preparing import Check, Preparer, no_problems
from vcjob.controller.queue_books import QueueBooks
from vcjob.controller.queues import QueueKeeper
from vcjob.controller.record import Record
from vcjob.controller.recorder import record_event
from vcjob.controller.records import Records
from vcjob.controller.repair_pace import contested
from vcjob.controller.work_queue import WorkQueue
from vcjob.core.draft import Told
from vcjob.core.plan import Plan, plan, recorded_later
from vcjob.core.reasons import Trouble
from vcjob.plugins.base import KeyPairNeed
from vcjob.plugins.registry import Registry

_NEARLY_SECONDS = 0.01
"""Two clocks, of which one is set right, need not agree on a time more exactly."""

_FIRST_DELAY_SECONDS = 0.05
_LONGEST_DELAY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Controller:
    """Makes Jobs real on a cluster.

    Args:
        cluster: where the Jobs and everything else live.
        plugins: the plugins that Jobs may use.
        clock: the time.
        jitter: a number from 0 to 1, drawn to spread repeated tries.
        make_key_pair: makes the keys that plugins want.
        workers: how many Jobs are worked on at once.
        unwatched: supporting kinds that are asked for by name only, for want of the right to list
            them. That somebody deleted one is noticed when it is to be changed. Where PriorityClass
            is among them, each that is named is taken to exist.
        of_others: also follow supporting objects that are not ours, so that a Job goes on when
            one that is in its way goes. On a cluster they may be many and large; without, the
            Job tries again at growing intervals of up to a minute.
        adapt_pod: makes of each pod what is created, as for the scheduler of the cluster; it must
            not change what it gets.
        check: the problems of an object, where no API server asks; its Job then waits.
        status_interval: seconds for each write of a Job's status; those that only inform wait
            (``StatusPace``).
        allowed_annotations: those of our annotations that widen rights and work here; None: all.
        keep_queues: open and close Queues, and count what is in them. Only whoever sees all
            PodGroups and Commands can.
        observers: are told what is worth measuring.

    Attributes:
        queue: UIDs of the Jobs that are to be looked at; its length is the queue's depth.
        records: what is known of each Job.
    """

    def __init__(
        self,
        cluster: Cluster,
        plugins: Registry,
        clock: Clock | None = None,
        *,
        jitter: random.Random | None = None,
        make_key_pair: MakeKeyPair = make_key_pair,
        workers: int = 4,
        unwatched: Collection[Kind] = (),
        of_others: bool = False,
        adapt_pod: Callable[[Object], Object] = lambda pod: pod,
        check: Check = no_problems,
        status_interval: float = 0.0,
        allowed_annotations: Collection[str] | None = None,
        keep_queues: bool = True,
        observers: Observers | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()
        self._make_key_pair = make_key_pair
        self._workers = workers
        self.queue: WorkQueue[str] = WorkQueue(self._clock.now)
        self._unwatched = frozenset(unwatched)
        self._status_interval = status_interval
        self._observers = observers or Observers()
        queue_work: WorkQueue[str] = WorkQueue(self._clock.now)
        books = QueueBooks(queue_work.add) if keep_queues else None
        self.records = Records(self.queue.add, self._unwatched, plugins.requires, books)
        sees_classes = PRIORITY_CLASS not in unwatched
        self._preparer = Preparer(
            self.records, plugins, allowed_annotations, check, sees_classes=sees_classes
        )
        self._applier = Applier(cluster, self.records, adapt_pod)
        self._queues = (
            None
            if books is None
            else QueueKeeper(cluster, self.records, books, queue_work, self._clock, self._jitter)
        )
        self._caches = Caches(
            cluster, self.records, self._clock, self._jitter, self._unwatched, of_others=of_others
        )

    @property
    def synced(self) -> bool:
        """Whether everything is known that decisions need; before, nothing is done."""
        return self._caches.synced

    @property
    def troubles(self) -> Mapping[Kind, str]:
        """What cannot be listed or watched at the moment, one sentence for each kind."""
        return self._caches.troubles

    def jobs(self) -> Iterable[Job]:
        """All Jobs there are, as far as they can be read."""
        return [record.job for record in self.records.by_uid.values() if record.job]

    def queue_counts(self) -> Iterable[tuple[str, Mapping[str, int]]]:
        """How many PodGroups are in which phase, by Queue; nothing where Queues are not kept."""
        return self._queues.books.counts() if self._queues is not None else ()

    async def run(self) -> None:
        """Work until cancelled."""
        with rarely_collected():
            await self._run()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._caches.keep_up())
            group.create_task(self.queue.wake(self._clock))
            if self._queues is not None:
                group.create_task(self._queues.run(self._caches.until_synced))
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._caches.until_synced()
            if not await self._work_on_next():
                await self.queue.filled()
            await asyncio.sleep(0)  # let watches and other Jobs have their turn

    async def _work_on_next(self) -> bool:
        uid = self.queue.take()
        if uid is None:
            return False
        try:
            await self._pass(uid)
        finally:
            self.queue.done(uid)
        return True

    async def _pass(self, uid: str) -> None:
        record = self.records.by_uid.get(uid)
        if record is None or record.obj is None:
            self.queue.forget(uid)
            self._observers.forgotten(uid)
            if record and record.commands:
                await self._drop_commands(record)
            return
        obj = record.obj
        metadata = obj["metadata"]
        current_job.set(f"{metadata['namespace']}/{metadata['name']}")
        began = self._clock.steady()
        try:
            await self._one_pass(record)
        except InTheWay as found:
            self._put_off(record, found.trouble)
            if found.obstacle:
                self.records.obstacles.setdefault(found.obstacle, set()).add(uid)
        except (Forbidden, Invalid) as error:  # somebody has to do something about it
            _log.warning("Job %s: %s", metadata["name"], error)
            told = Told("Warning", "Refused", f"what is decided cannot be carried out: {error}")
            await record_event(self._cluster, obj, told, self._clock.now())
            self._put_off(record, None)
        except ClusterError as error:
            _log.info("Job %s: %s", metadata["name"], error)
            self._put_off(record, None)
        except Exception as error:  # one Job must not stop the others
            _log.exception("Job %s: fault in the controller", metadata["name"])
            self._put_off(record, Trouble("ControllerError", f"{type(error).__name__}: {error}"))
        self._observers.passed(self._clock.steady() - began)
        if record.job:
            self._observers.seen(record.job, record.observed)

    async def _drop_commands(self, record: Record) -> None:
        try:
            await self._applier.drop_commands(record)
        except ClusterError as error:
            _log.info("Commands for a Job that is gone cannot be removed: %s", error)
            self._put_off(record, None)

    async def _one_pass(self, record: Record) -> None:
        now = self._clock.now()
        assert record.obj is not None
        assert record.job is not None
        blueprint, malformed = self._preparer.blueprint(record)
        pause = record.retry_at - self._clock.steady()
        attempt = record.trouble is not None and pause <= _NEARLY_SECONDS
        around = self._preparer.surroundings(record, blueprint, malformed, attempt=attempt)
        status = record.obj.get("status")
        written = status if isinstance(status, dict) else {}
        planned = plan(record.job, written, record.observed, around, blueprint, now)
        if planned.delete_job:
            await self._delete_job(record.obj)
            return
        if planned.ensure and (lacking := blueprint.lacking_key_pairs):
            await self._make_key_pairs(record, lacking)
            self.queue.add(record.uid)  # much may have changed meanwhile: plan anew, with keys
            return
        planned = self._paced(record, planned, written, now)
        obj = record.obj
        warnings = self._preparer.warnings(record, blueprint)
        if planned.ensure and not attempt:
            planned = await self._repaired_in_turn(record, planned, now)
        for told in warnings:
            await record_event(self._cluster, obj, told, now)
        obstructed = await self._applier.decide(record, planned)
        failure: Exception | None = None
        try:
            await self._applier.act(record, planned, blueprint, obstructed)
        except (InTheWay, ClusterError) as error:
            failure = error
        for told in planned.tell:
            await record_event(self._cluster, obj, told, now)
        if failure:
            raise failure
        record.failures = 0
        if attempt:
            record.trouble = None
            record.attempts = 0
            self.queue.add(record.uid)
        elif record.trouble:
            self.queue.add_at(record.uid, now + pause)
        if planned.again is not None:
            self.queue.add_at(record.uid, planned.again)

    def _paced(self, record: Record, planned: Plan, written: Object, now: float) -> Plan:
        """The plan without its record, if that only informs and has to wait for its turn."""
        if planned.record is None:
            return planned
        steady, interval = self._clock.steady(), self._status_interval
        wait = record.pace.wait(steady, interval)
        later = recorded_later(planned, written) if wait else None
        if later is None:
            record.pace.spend(steady, interval)
            return planned
        self.queue.add_at(record.uid, now + wait)
        return later

    async def _repaired_in_turn(self, record: Record, planned: Plan, now: float) -> Plan:
        """The plan without what it makes or repairs, if that was done too often; says so once.

        Pods, which need these objects, wait with them.
        """
        pace, steady = record.repairs, self._clock.steady()
        wait = pace.wait(steady)
        if not wait:
            pace.spend(steady)
            return planned
        self.queue.add_at(record.uid, now + wait)
        if not pace.told:
            pace.told = True
            told = contested(planned.ensure[0])
            await record_event(self._cluster, record.there, told, now)
        return msgspec.structs.replace(planned, ensure=(), create=())

    async def _make_key_pairs(self, record: Record, needs: Collection[KeyPairNeed]) -> None:
        if SECRET in self._unwatched:
            await self._look_for_secrets(record, {need.secret for need in needs})
        found = stored_pairs(needs, record.owned)
        record.key_pairs |= found
        try:
            for need in needs:
                if need.name not in found:
                    record.key_pairs[need.name] = await self._make_key_pair(need.algorithm)
        except ImportError as error:  # what is installed may be for another machine
            message = f"keys cannot be made: {error}; install the package cryptography anew"
            raise InTheWay(Trouble("KeysNotMade", message)) from error

    async def _look_for_secrets(self, record: Record, names: Iterable[str]) -> None:
        """Read what an earlier controller may have left; raises InTheWay without the right to."""
        namespace = record.there["metadata"]["namespace"]
        for name in sorted(names):
            try:
                secret = await self._cluster.get(SECRET, namespace, name)
            except NotFound:
                continue
            except Forbidden as error:
                raise InTheWay(Trouble(f"{SECRET}Error", str(error))) from error
            self.records.take(SECRET, EventType.MODIFIED, secret, quietly=True)

    async def _delete_job(self, obj: Object) -> None:
        metadata = obj["metadata"]
        try:
            await self._cluster.delete(
                JOB, metadata["namespace"], metadata["name"], uid=metadata["uid"],
                propagation="Foreground",
            )  # fmt: skip
        except NotFound:
            return

    def _put_off(self, record: Record, trouble: Trouble | None) -> None:
        """Try again later, the later the more often it has failed."""
        before = record.attempts if trouble else record.failures
        after = before + 1
        pause = pause_after(
            after, self._jitter, first=_FIRST_DELAY_SECONDS, longest=_LONGEST_DELAY_SECONDS
        )
        if trouble:
            record.attempts = after
            record.retry_at = self._clock.steady() + pause
            if trouble != record.trouble:
                record.trouble = trouble
                self.queue.add(record.uid)
        else:
            record.failures = after
        self.queue.add_at(record.uid, self._clock.now() + pause)
