"""What the controller knows of each Job, kept up by watch events and by its own writes.

Records are found by the Job's UID, so that a namesake's leftovers are never taken for its own.
"""

import logging
import math
from collections.abc import Callable, Collection

from vcjob.api.defaults import Requires, requires_nothing
from vcjob.api.kinds import (
    COMMAND,
    JOB,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from vcjob.api.types import Object, key_of
from vcjob.controller.cluster import EventType
from vcjob.controller.departed import Departed
from vcjob.controller.queue_books import KINDS as ABOUT_QUEUES
from vcjob.controller.queue_books import QueueBooks
from vcjob.controller.reading import read_job, read_status
from vcjob.controller.record import Record
from vcjob.core.facts import PodFacts, pod_facts
from vcjob.core.observed import Slot

Name = tuple[Kind, str, str]
"""An object's kind, namespace and name."""

_log = logging.getLogger(__name__)


class Records:
    """All Jobs and what belongs to them; ``changed`` is called with the UID of each that changes.

    ``queues`` and ``claims`` are names of those that exist; ``priorities`` are the values of
    PriorityClasses. ``obstacles`` tells which Jobs wait for an object to go. ``unwatched`` are
    kinds of which no news come: what is known of them is what we asked for or wrote. ``requires``
    is for Jobs that no webhook has completed (``read_job``). ``also`` are books that get the same
    news of Queues and what concerns them.
    """

    def __init__(
        self,
        changed: Callable[[str], None],
        unwatched: Collection[Kind] = frozenset(),
        requires: Requires = requires_nothing,
        also: QueueBooks | None = None,
    ) -> None:
        self._changed = changed
        self._unwatched = unwatched
        self._requires = requires
        self._also = also
        self.by_uid: dict[str, Record] = {}
        self.queues: dict[str, Object] = {}
        self.claims: set[tuple[str, str]] = set()
        self.priorities: dict[str, int] = {}
        self.obstacles: dict[Name, set[str]] = {}
        self._known: dict[Kind, dict[tuple[str, str], tuple[str, int, str]]] = {}
        self._uids_by_name: dict[tuple[str, str], str] = {}
        self._departed = Departed()

    def replace(self, kind: Kind, objects: list[Object]) -> None:
        """Take in a whole list: what is not in it is gone."""
        listed = {key_of(obj) for obj in objects}
        for key, (uid, _, owner) in list(self._known.get(kind, {}).items()):
            if key not in listed:
                self._forget(kind, key, uid, owner)
        for obj in objects:
            self.take(kind, EventType.MODIFIED, obj)

    def take(self, kind: Kind, event: EventType, obj: Object, *, quietly: bool = False) -> None:
        """Take in one object as it is now (or was last); older news than known are ignored.

        So are news of what is gone, but not of what has only left the selection that is followed
        (its label was taken away), and was read or has come back (ADDED). ``quietly``: the Job need
        not be looked at again for it. An object that has an impossible shape is left out.
        """
        try:
            self._take(kind, event, obj, quietly=quietly)
        except (AttributeError, KeyError, TypeError, ValueError):  # it must not stop the others
            named = (obj.get("metadata") or {}).get("name")
            _log.exception("%s %s is left out: it has an impossible shape", kind, named)

    def _take(self, kind: Kind, event: EventType, obj: Object, *, quietly: bool) -> None:
        metadata = obj["metadata"]
        key = key_of(obj)
        version = int(metadata.get("resourceVersion") or 0)
        known = self._known.setdefault(kind, {})
        uid, before, owner = known.get(key, ("", -1, ""))
        if version <= before or self._departed.is_late(metadata["uid"], event, version):
            return
        if event is EventType.DELETED:
            if uid and uid == metadata["uid"]:
                self._forget(kind, key, uid, owner, version)
            self._wake(kind, key)
            return
        new_owner = metadata["uid"] if kind == JOB else self._owner_of(kind, obj)
        if kind in self._unwatched and not self._is_known(new_owner):
            return  # the answer of a write for a Job that is gone: nobody will tell that it went
        self._departed.is_back(metadata["uid"])
        if uid and uid != metadata["uid"]:
            self._forget(kind, key, uid, owner)
        elif uid and owner != new_owner:  # somebody took it away from the Job, or gave it to one
            self._forget(kind, key, uid, owner, lives_on=True)
        owner = new_owner
        known[key] = (metadata["uid"], version, owner)
        self._put(kind, owner, obj)
        if owner and not quietly:
            self._changed(owner)

    def _is_known(self, uid: str) -> bool:
        record = self.by_uid.get(uid)
        return record is not None and record.obj is not None

    def is_gone(self, kind: Kind, namespace: str, name: str) -> None:
        """An object was not there: of a kind that is watched, the news of it are on their way."""
        if kind in self._unwatched and (known := self._known.get(kind, {}).get((namespace, name))):
            uid, _, owner = known
            self._forget(kind, (namespace, name), uid, owner)

    def record(self, uid: str) -> Record:
        """The record of a Job, a new one if there is none."""
        if uid not in self.by_uid:
            self.by_uid[uid] = Record(uid)
        return self.by_uid[uid]

    def _put(self, kind: Kind, owner: str, obj: Object) -> None:
        name = obj["metadata"]["name"]
        if self._also is not None and kind in ABOUT_QUEUES:
            self._also.put(kind, obj)
        if kind == QUEUE:
            new = name not in self.queues
            self.queues[name] = obj
            if new:
                self._wake_waiting()
        elif kind == PRIORITY_CLASS:
            value = int(obj.get("value") or 0)
            before, self.priorities[name] = self.priorities.get(name), value
            if before != value:
                self._wake_waiting()  # which tasks make up the minimum may be others now
        elif kind == PERSISTENT_VOLUME_CLAIM and key_of(obj) not in self.claims:
            self.claims.add(key_of(obj))
            self._wake_waiting("Running")  # one that lost its claim waits too
        if not owner:
            return
        record = self.record(owner)
        if kind == JOB:
            self._put_job(record, obj)
        elif kind == POD:
            facts = pod_facts(obj)
            there = record.observed.pods.get((facts.task, facts.index)) if facts else None
            if there is None or there.uid != obj["metadata"]["uid"]:
                self._forget_pod(record, name, obj["metadata"]["uid"])  # of another place
            if facts is None:
                return
            record.observed.set(facts)
            if obj["metadata"].get("deletionTimestamp"):
                record.removing.pop((facts.task, facts.index), None)
        elif kind == POD_GROUP:
            record.group = obj
        elif kind == COMMAND:
            record.commands[name] = obj
        else:
            record.owned[kind, name] = obj

    def _put_job(self, record: Record, obj: Object) -> None:
        self._uids_by_name[key_of(obj)] = record.uid
        was_empty = record.is_empty
        before, record.obj = record.obj, obj
        same_spec = before is not None and before.get("spec") == obj.get("spec")
        if before is not None and not same_spec:
            record.retry_at = 0.0  # what was in the way may be put right
        if same_spec and record.job and not record.malformed:
            record.job = read_status(obj, record.job)
        else:
            record.job, record.malformed = read_job(obj, self._requires)
        if before is None and not was_empty:
            self._drop_strangers(record)

    def _drop_strangers(self, record: Record) -> None:
        """Forget what was known before its Job, and says that it belongs to one elsewhere."""
        for kind, known in self._known.items():
            for key, (uid, _, owner) in list(known.items()):
                if owner == record.uid and not self._may_own(owner, key[0]):
                    self._forget(kind, key, uid, owner, lives_on=True)

    def _may_own(self, uid: str, namespace: str) -> bool:
        """Whether a Job, as far as it is known, is in this namespace: an owner has to be."""
        record = self.by_uid.get(uid)
        return not record or not record.obj or key_of(record.obj)[0] == namespace

    def _forget(
        self,
        kind: Kind,
        key: tuple[str, str],
        uid: str,
        owner: str,
        version: float = math.inf,
        *,
        lives_on: bool = False,
    ) -> None:
        """An object is gone, as news of this ``version`` say, or is no longer its owner's."""
        del self._known[kind][key]
        if not lives_on:
            self._departed.note(uid, version)
        _, name = key
        if self._also is not None and kind in ABOUT_QUEUES:
            self._also.drop(kind, key)
        if kind == QUEUE:
            self.queues.pop(name, None)
        elif kind == PRIORITY_CLASS:
            self.priorities.pop(name, None)
        elif kind == PERSISTENT_VOLUME_CLAIM:
            self.claims.discard(key)
        self._wake(kind, key)
        record = self.by_uid.get(owner)
        if not record:
            return
        if kind == JOB:
            record.obj = record.job = None
            if self._uids_by_name.get(key) == uid:
                del self._uids_by_name[key]
            for owned, of_job in list(record.owned):
                if owned in self._unwatched:  # it goes with its Job, and nobody tells
                    del record.owned[owned, of_job]
                    self._known[owned].pop((key[0], of_job), None)
        elif kind == POD:
            self._forget_pod(record, name, uid)
        elif kind == POD_GROUP:
            record.group = None
        elif kind == COMMAND:
            record.commands.pop(name, None)
        else:
            record.owned.pop((kind, name), None)
        if record.is_empty:
            self._drop(owner)
        self._changed(owner)

    def _drop(self, uid: str) -> None:
        """Nothing is known of a Job any more: it waits for nothing either."""
        del self.by_uid[uid]
        for name in list(self.obstacles):
            self.obstacles[name].discard(uid)
            if not self.obstacles[name]:
                del self.obstacles[name]

    def _forget_pod(self, record: Record, name: str, uid: str) -> None:
        task, _, index = name.rpartition("-")
        for slot, facts in _candidates(record, task, index):
            if facts.uid == uid:
                record.observed.remove(facts)
                record.removing.pop(slot, None)

    def _owner_of(self, kind: Kind, obj: Object) -> str:
        """UID of the Job that an object belongs to or, for a Command, is for."""
        uid = self._named_owner(kind, obj)
        return uid if self._may_own(uid, key_of(obj)[0]) else ""

    def _named_owner(self, kind: Kind, obj: Object) -> str:
        if kind == COMMAND:
            target = obj.get("target")
            if not isinstance(target, dict):
                return ""
            if target.get("kind") != JOB.kind or target.get("apiVersion") != JOB.api_version:
                return ""
            namespace = obj["metadata"].get("namespace", "")
            named = self._uids_by_name.get((namespace, target.get("name", "")), "")
            return target.get("uid") or named
        for owner in obj["metadata"].get("ownerReferences") or ():
            if (
                owner.get("controller")
                and owner.get("kind") == JOB.kind
                and owner.get("apiVersion") == JOB.api_version
            ):
                return str(owner.get("uid", ""))
        return ""

    def _wake(self, kind: Kind, key: tuple[str, str]) -> None:
        """An object is gone: those for whom it stood in the way may try again at once."""
        for uid in self.obstacles.pop((kind, *key), ()):
            if uid in self.by_uid:
                self.by_uid[uid].retry_at = 0.0
                self._changed(uid)

    def _wake_waiting(self, *also: str) -> None:
        phases = ("", "Pending", "Restarting", *also)
        for record in self.by_uid.values():
            state = record.job.status.state if record.job else None
            if state and (state.phase in phases or (state.phase == "Running" and state.reason)):
                self._changed(record.uid)


def _candidates(record: Record, task: str, index: str) -> list[tuple[Slot, PodFacts]]:
    """Pods whose name may be ``<job>-<task>-<index>``, the tasks' names being the Job's secret."""
    if not index.isdigit():
        return []
    number = int(index)
    return [
        ((name, number), record.observed.pods[name, number])
        for name in list(record.observed.tasks)
        if task.endswith(f"-{name}") and (name, number) in record.observed.pods
    ]
