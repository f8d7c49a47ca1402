"""The controller of Jobs: watches in, plans made and carried out, until it is cancelled."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Collection, Iterable

from vcjob.api.kinds import (
    COMMAND,
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SUPPORTING,
    Kind,
)
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Job, MalformedObject, Object
from vcjob.controller.applying import Applier, InTheWay
from vcjob.controller.clock import Clock, SystemClock
from vcjob.controller.cluster import Cluster, ClusterError, EventType, Gone, NotFound, Unavailable
from vcjob.controller.garbage import rarely_collected
from vcjob.controller.key_pairs import MakeKeyPair, make_key_pair, stored_pairs
from vcjob.controller.reading import without_templates
from vcjob.controller.recorder import record_event
from vcjob.controller.records import Record, Records
from vcjob.controller.work_queue import WorkQueue
from vcjob.core.actions import FINAL
from vcjob.core.blueprint import Blueprint
from vcjob.core.draft import Told
from vcjob.core.plan import Surroundings, plan
from vcjob.core.reasons import MALFORMED, PLUGIN_WARNING, Trouble
from vcjob.plugins.base import KeyPairNeed
from vcjob.plugins.registry import Registry

# Jobs come before pods: a Job's state must not be newer than what is known of its pods.
_WATCHED: tuple[Kind, ...] = (QUEUE, PRIORITY_CLASS, JOB, COMMAND, POD_GROUP,
                              PERSISTENT_VOLUME_CLAIM, POD)  # fmt: skip
_OURS = {MANAGED_BY: MANAGED_BY_VALUE}

_FIRST_DELAY_SECONDS = 0.05
_LONGEST_DELAY_SECONDS = 60.0
_MOST_DOUBLINGS = 20
_WATCH_DELAY_SECONDS = 1.0

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
            them. That somebody deleted one is noticed when it is to be changed.
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
    ) -> None:
        self._cluster = cluster
        self._plugins = plugins
        self._clock = clock or SystemClock()
        self._jitter = jitter or random.Random()
        self._make_key_pair = make_key_pair
        self._workers = workers
        self.queue: WorkQueue[str] = WorkQueue(self._clock.now)
        self._unwatched = frozenset(unwatched)
        self.records = Records(self.queue.add, self._unwatched)
        self._applier = Applier(cluster, self.records)

    async def run(self) -> None:
        """Work until cancelled."""
        with rarely_collected():
            await self._run()

    async def _run(self) -> None:
        supporting = (kind for kind in SUPPORTING if kind not in self._unwatched)
        listed = {kind: await self._list(kind) for kind in (*_WATCHED, *supporting)}
        async with asyncio.TaskGroup() as group:
            for kind, since in listed.items():
                group.create_task(self._follow(kind, since))
            group.create_task(self._wake())
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _list(self, kind: Kind) -> str:
        while True:
            try:
                listed = await self._cluster.list(kind, labels=_labels(kind))
            except Unavailable as error:
                _log.warning("cannot list %s: %s", kind.plural, error)
                await self._clock.sleep_until(self._clock.now() + _WATCH_DELAY_SECONDS)
                continue
            self.records.replace(kind, listed.items)
            return listed.resource_version

    async def _follow(self, kind: Kind, since: str) -> None:
        while True:
            try:
                async for event in self._cluster.watch(kind, since, labels=_labels(kind)):
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type is not EventType.BOOKMARK:
                        self.records.take(kind, event.type, event.object)
            except Gone:
                since = await self._list(kind)
            except ClusterError as error:
                _log.warning("watching %s broke off: %s", kind.plural, error)
                await self._clock.sleep_until(self._clock.now() + _WATCH_DELAY_SECONDS)

    async def _wake(self) -> None:
        """Bring back keys whose time has come."""
        while True:
            due = self.queue.next_due
            if due is None:
                await self.queue.later_changed()
                continue
            sleeping = asyncio.ensure_future(self._clock.sleep_until(due))
            changing = asyncio.ensure_future(self.queue.later_changed())
            try:
                await asyncio.wait({sleeping, changing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeping.cancel()
                changing.cancel()
            self.queue.take_due()

    async def _work(self) -> None:
        while True:
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
            return
        obj = record.obj
        try:
            await self._one_pass(record)
        except InTheWay as found:
            self._put_off(record, found.trouble)
            if found.obstacle:
                self.records.obstacles.setdefault(found.obstacle, set()).add(uid)
        except ClusterError as error:
            _log.info("Job %s: %s", obj["metadata"]["name"], error)
            self._put_off(record, None)
        except Exception as error:  # one Job must not stop the others
            _log.exception("Job %s: fault in the controller", obj["metadata"]["name"])
            self._put_off(record, Trouble("ControllerError", f"{type(error).__name__}: {error}"))

    async def _one_pass(self, record: Record) -> None:
        now = self._clock.now()
        assert record.obj is not None
        assert record.job is not None
        blueprint, malformed = self._blueprint(record)
        attempt = record.trouble is not None and now >= record.retry_at
        around = self._surroundings(record, blueprint, malformed, attempt=attempt)
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
        obj = record.obj
        for told in _warnings(record, blueprint):
            await record_event(self._cluster, obj, told, now)
        await self._applier.apply(record, planned, blueprint)
        for told in planned.tell:
            await record_event(self._cluster, obj, told, now)
        record.failures = 0
        if attempt:
            record.trouble = None
            record.attempts = 0
            self.queue.add(record.uid)
        elif record.trouble:
            self.queue.add_at(record.uid, record.retry_at)
        if planned.again is not None:
            self.queue.add_at(record.uid, planned.again)

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
        """Read what an earlier controller may have left."""
        assert record.obj is not None
        for name in sorted(names):
            with contextlib.suppress(NotFound):
                secret = await self._cluster.get(SECRET, record.obj["metadata"]["namespace"], name)
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
        delay = min(_FIRST_DELAY_SECONDS * 2**before, _LONGEST_DELAY_SECONDS)
        when = self._clock.now() + delay * (1 + self._jitter.random() / 2)
        after = min(before + 1, _MOST_DOUBLINGS)
        if trouble:
            record.attempts = after
            record.retry_at = when
            if trouble != record.trouble:
                record.trouble = trouble
                self.queue.add(record.uid)
        else:
            record.failures = after
        self.queue.add_at(record.uid, when)

    def _blueprint(self, record: Record) -> tuple[Blueprint, str]:
        """The Job's blueprint, made anew when what it is made from has changed; what is wrong."""
        assert record.obj is not None
        assert record.job is not None
        metadata = record.obj["metadata"]
        forwarding = self._is_spread(record.job)
        basis = (
            record.obj.get("spec"), metadata.get("annotations"), metadata.get("labels"), forwarding
        )  # fmt: skip
        blueprint, malformed = record.blueprint, record.blueprint_of[1]
        if blueprint is None or record.blueprint_of[0] != basis:
            malformed = record.malformed
            try:
                blueprint = Blueprint(
                    record.job, self._plugins, record.key_pairs, forwarding=forwarding
                )
            except MalformedObject as error:
                malformed = malformed or str(error)
                blueprint = Blueprint(without_templates(record.job), self._plugins)
        if blueprint.key_pairs:
            record.key_pairs |= stored_pairs(blueprint.key_pairs, record.owned)
            blueprint = blueprint.with_key_pairs(record.key_pairs)
        record.blueprint, record.blueprint_of = blueprint, (basis, malformed)
        return blueprint, malformed

    def _is_spread(self, job: Job) -> bool:
        """Whether a Job's queue is spread over several clusters."""
        queue = self.records.queues.get(job.spec.queue) or {}
        return bool((queue.get("spec") or {}).get("extendClusters"))

    def _surroundings(
        self, record: Record, blueprint: Blueprint, malformed: str, *, attempt: bool
    ) -> Surroundings:
        assert record.job is not None
        namespace = record.job.metadata.namespace
        absent = tuple(
            claim.name
            for claim in blueprint.claims
            if claim.spec is None and (namespace, claim.name) not in self.records.claims
        )
        return Surroundings(
            group=record.group,
            owned=record.owned,
            commands=tuple(record.commands.values()),
            priorities=self.records.priorities,
            queue_exists=(record.job.spec.queue or "default") in self.records.queues,
            absent_claims=absent,
            forwarding=self._is_spread(record.job),
            trouble=Trouble(MALFORMED, malformed) if malformed else record.trouble,
            attempt=attempt and not malformed,
        )


def _warnings(record: Record, blueprint: Blueprint) -> list[Told]:
    """What plugins warn of, once: it refuses nothing, and stands in no status."""
    assert record.job is not None
    if record.job.status.state.phase in FINAL:
        return []
    sentences = [
        f"{problem.message}{f'; {problem.hint}' if problem.hint else ''}"
        for problem in blueprint.problems
        if problem.warning
    ]
    new = [one for one in dict.fromkeys(sentences) if one not in record.warned]
    record.warned = frozenset(sentences)
    return [Told("Warning", PLUGIN_WARNING, sentence) for sentence in new]


def _labels(kind: Kind) -> dict[str, str] | None:
    return _OURS if kind in SUPPORTING else None
