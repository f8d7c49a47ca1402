"""The objects of a store and what hangs on them, changed by whole transactions only."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from vcjob.api.kinds import Kind
from vcjob.api.types import Key, Object
from vcjob.controller.cluster import EventType
from vcjob.local.watches import Change, Follow, History, Wanted

Place = tuple[Kind, Key]


class Write(NamedTuple):
    """What becomes of one object: ``object`` is None when it is gone."""

    kind: Kind
    key: Key
    object: Object | None


class Disk(Protocol):
    """Where transactions go before anybody hears of them."""

    def write(self, version: int, writes: Sequence[Write]) -> list[int]:
        """Keep all of them or none; returns the size of each in bytes. Raises StorageFailed."""


class Objects:
    """Objects by kind and key, by UID, and by who owns them; with the history of each kind.

    Nothing here waits, so that nobody sees a transaction half done.
    """

    def __init__(self, history: int, history_bytes: int, disk: Disk | None = None) -> None:
        self.version = 0
        self.uids: dict[str, Place] = {}
        self._objects: dict[Kind, dict[Key, Object]] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._histories: dict[Kind, History] = {}
        self._history_length = history
        self._history_bytes = history_bytes
        self._disk = disk
        self._changes: list[tuple[Place, Change]] = []
        self._forgotten = 0

    def load(self, version: int, objects: Iterator[tuple[Kind, Key, Object]]) -> None:
        """Take in what a disk kept; nothing before ``version`` can be watched any more."""
        for kind, key, obj in objects:
            self._objects.setdefault(kind, {})[key] = obj
            self._index((kind, key), obj)
        self.version = self._forgotten = version

    def find(self, kind: Kind, key: Key) -> Object | None:
        """One object, or None."""
        return self._objects.get(kind, {}).get(key)

    def at(self, place: Place) -> Object:
        """The object at a place where one is."""
        kind, key = place
        return self._objects[kind][key]

    def of(self, kind: Kind) -> dict[Key, Object]:
        """All objects of a kind."""
        return self._objects.get(kind, {})

    def kinds(self) -> list[Kind]:
        """The kinds of which there are objects."""
        return [kind for kind, objects in self._objects.items() if objects]

    def dependents(self, uid: str) -> Iterator[Place]:
        """Where the objects are that name ``uid`` as an owner."""
        return (self.uids[dependent] for dependent in self._dependents.get(uid, ()))

    def history(self, kind: Kind) -> History:
        """The latest changes of a kind."""
        if kind not in self._histories:
            self._histories[kind] = History(
                self._history_length, self._history_bytes, self._forgotten
            )
        return self._histories[kind]

    def follow(self, kind: Kind, since: int, wanted: Wanted) -> Follow:
        """The changes of a kind after a version; raises Gone."""
        return self.history(kind).follow(since, wanted, lambda: self.version)

    def transaction(self, *, dry_run: bool = False) -> "Transaction":
        """What is changed inside happens as a whole, or not at all; never with ``dry_run``."""
        return Transaction(self, dry_run)

    def put(self, kind: Kind, key: Key, obj: Object) -> Object:
        """Store an object, whose ``metadata`` nobody else has, under the next version."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        objects = self._objects.setdefault(kind, {})
        old = objects.get(key)
        objects[key] = obj
        if old is None:
            self._index((kind, key), obj)
        elif old["metadata"].get("ownerReferences") is not obj["metadata"].get("ownerReferences"):
            self._unindex(old)
            self._index((kind, key), obj)
        event = EventType.ADDED if old is None else EventType.MODIFIED
        self._changes.append(((kind, key), Change(self.version, event, obj, old)))
        return obj

    def remove(self, kind: Kind, key: Key) -> Object:
        """Take an object away; returns its last state."""
        old = self._objects[kind].pop(key)
        self._unindex(old)
        self.version += 1
        metadata = {**old["metadata"], "resourceVersion": str(self.version)}
        last = {**old, "metadata": metadata}
        change = Change(self.version, EventType.DELETED, last, old)
        self._changes.append(((kind, key), change))
        return last

    def commit(self) -> None:
        """Keep what was changed since the last commit and tell it to all who watch."""
        if self._disk is not None and self._changes:
            writes = [
                Write(*place, None if change.type is EventType.DELETED else change.object)
                for place, change in self._changes
            ]
            sizes = self._disk.write(self.version, writes)
            self._changes = [
                (place, change._replace(size=size))
                for (place, change), size in zip(self._changes, sizes, strict=True)
            ]
        changes, self._changes = self._changes, []
        for (kind, _), change in changes:
            self.history(kind).record(change)

    def roll_back(self, version: int) -> None:
        """Undo what was changed since ``version``, that of the last commit."""
        changes, self._changes = self._changes, []
        for (kind, key), change in reversed(changes):
            if change.type is not EventType.DELETED:
                self._unindex(self._objects[kind].pop(key))
            if change.before is not None:
                self._objects[kind][key] = change.before
                self._index((kind, key), change.before)
        self.version = version

    def _index(self, place: Place, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        self.uids[uid] = place
        for owner in owner_uids(obj):
            self._dependents.setdefault(owner, {})[uid] = None

    def _unindex(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        del self.uids[uid]
        for owner in owner_uids(obj):
            dependents = self._dependents.get(owner)
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[owner]


class Transaction:
    """Changes that happen as a whole or not at all: see ``Objects.transaction``."""

    def __init__(self, objects: Objects, dry_run: bool) -> None:
        self._objects = objects
        self._dry_run = dry_run
        self._version = objects.version

    def __enter__(self) -> None:
        return

    def __exit__(self, failed: type[BaseException] | None, *rest: object) -> None:
        if failed or self._dry_run:
            self._objects.roll_back(self._version)
            return
        try:
            self._objects.commit()
        except BaseException:
            self._objects.roll_back(self._version)
            raise


def owner_uids(obj: Object) -> list[str]:
    """The UIDs of those who own an object."""
    return [owner.get("uid", "") for owner in obj["metadata"].get("ownerReferences") or ()]
