"""What is known of Queues: what is in them, below them and asked of them.

Each change of an object is entered in constant time (a Queue's: in the number of those right below
it), however many PodGroups there are.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from vcjob.api.kinds import COMMAND, POD_GROUP, QUEUE, Kind
from vcjob.api.queues import DEFAULT_QUEUE, parent_of
from vcjob.api.types import Key, Object, key_of
from vcjob.core.orders import age
from vcjob.core.queue_states import is_shut

KINDS = frozenset({COMMAND, POD_GROUP, QUEUE})


class QueueBooks:
    """All Queues; ``changed`` is called with the name of each that is to be looked at."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self.queues: dict[str, Object] = {}
        self._below: dict[str, dict[str, None]] = {}
        self._places: dict[Key, tuple[str, str]] = {}
        self._phases: dict[str, Counter[str]] = {}
        self._targets: dict[Key, str] = {}
        self._commands: dict[str, dict[Key, Object]] = {}

    def phases(self, name: str) -> Mapping[str, int]:
        """How many PodGroups of a Queue are in which phase; before they have one, in Pending."""
        return self._phases.get(name, {})

    def counts(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """The names of all Queues there are, and how many PodGroups are in which phase there."""
        return ((name, self.phases(name)) for name in self.queues)

    def above(self, name: str) -> Object | None:
        """The Queue above one, if there is one."""
        return self.queues.get(parent_of(self.queues[name]))

    def commands(self, name: str) -> list[Object]:
        """Commands for a Queue, oldest first."""
        return sorted(self._commands.get(name, {}).values(), key=age)

    def put(self, kind: Kind, obj: Object) -> None:
        """A Queue, a PodGroup or a Command as it is now."""
        if kind == QUEUE:
            self._put_queue(obj)
        elif kind == POD_GROUP:
            self._put_group(obj)
        else:
            self._put_command(obj)

    def drop(self, kind: Kind, key: Key) -> None:
        """A Queue, a PodGroup or a Command is no more."""
        if kind == QUEUE:
            _, name = key
            if (queue := self.queues.pop(name, None)) is not None:
                self._leave(name, parent_of(queue))
                self._wake_below(name)
                self._changed(name)
        elif kind == POD_GROUP:
            if place := self._places.pop(key, None):
                self._count(place, -1)
        elif (target := self._targets.pop(key, None)) is not None:
            del self._commands[target][key]
            if not self._commands[target]:
                del self._commands[target]

    def _put_queue(self, queue: Object) -> None:
        name, before = queue["metadata"]["name"], self.queues.get(queue["metadata"]["name"])
        self.queues[name] = queue
        if before is not None and parent_of(before) != parent_of(queue):
            self._leave(name, parent_of(before))
        self._below.setdefault(parent_of(queue), {})[name] = None
        if is_shut(before) != is_shut(queue):
            self._wake_below(name)
        self._changed(name)

    def _put_group(self, group: Object) -> None:
        spec, status = group.get("spec") or {}, group.get("status") or {}
        key = key_of(group)
        place = (spec.get("queue") or DEFAULT_QUEUE, status.get("phase") or "Pending")
        before = self._places.get(key)
        if before == place:
            return
        if before is not None:
            self._count(before, -1)
        self._places[key] = place
        self._count(place, 1)

    def _put_command(self, command: Object) -> None:
        target, key = command.get("target") or {}, key_of(command)
        self.drop(COMMAND, key)
        if target.get("kind") != QUEUE.kind or target.get("apiVersion") != QUEUE.api_version:
            return
        name = target.get("name") or ""
        self._targets[key] = name
        self._commands.setdefault(name, {})[key] = command
        self._changed(name)

    def _count(self, place: tuple[str, str], times: int) -> None:
        name, phase = place
        phases = self._phases.setdefault(name, Counter())
        phases[phase] += times
        if not phases[phase]:
            del phases[phase]
        if not phases:
            del self._phases[name]
        self._changed(name)

    def _leave(self, name: str, parent: str) -> None:
        self._below[parent].pop(name, None)
        if not self._below[parent]:
            del self._below[parent]

    def _wake_below(self, name: str) -> None:
        for one in self._below.get(name, ()):
            self._changed(one)
