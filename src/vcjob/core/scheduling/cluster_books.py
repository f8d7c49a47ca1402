"""What the scheduler of gangs on a cluster knows, and its decisions from that.

The ledger keeps gangs and their pods, the books of the nodes what is left of them. Which pods a
gang will have, before there are any, is told by its Job.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import ceil

import msgspec

from vcjob.api.kinds import JOB
from vcjob.api.names import GROUP_NAME
from vcjob.api.types import Job, Object, Task
from vcjob.core.podgroup import minimum_pods
from vcjob.core.pods import NAMELESS_TASK
from vcjob.core.scheduling.fitting import Nodes
from vcjob.core.scheduling.gangs import QueueLimits, admissions
from vcjob.core.scheduling.gating import GATE
from vcjob.core.scheduling.ledger import BookedGang, BookedPod, Key, Ledger
from vcjob.core.scheduling.node_books import NodeBooks
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.scheduling.priorities import priority_of
from vcjob.core.scheduling.requests import queue_limits
from vcjob.core.scheduling.setbacks import is_clearing
from vcjob.core.scheduling.shapes import PODS, PodShape, billionths, pod_shape
from vcjob.core.times import seconds_of

PutOff = Callable[[Gang], Wait | None]
"""Why a gang may not start yet, whatever room there is."""


class _JobPods(msgspec.Struct, frozen=True):
    """The tasks of a Job without their templates, and the shape of each one's pods."""

    tasks: tuple[Task, ...]
    shapes: dict[str, PodShape]


class ClusterBooks:
    """Gangs, their Jobs and pods, queues, priorities, nodes. Each change is entered as it comes.

    ``ledger.changed`` are gangs whose phase or counts may have to be written, ``ledger.to_bind``
    those with pods that may now be let go. ``room_grew`` tells that a waiting gang may fit by now.
    """

    def __init__(self) -> None:
        self.ledger = Ledger(GATE)
        self.nodes = NodeBooks()
        self.room_grew = False
        self._queues: dict[str, QueueLimits] = {}
        self._classes: dict[str, Object] = {}
        self._priorities: dict[str, int] = {}
        self._jobs: dict[str, _JobPods] = {}

    def enter_node(self, node: Object, *, gone: bool = False) -> None:
        """A node as it is now, or as it last was."""
        self.room_grew |= self.nodes.enter_node(node, gone=gone)

    def enter_pod(self, pod: Object, *, gone: bool = False) -> None:
        """A pod of the cluster, whoever's, as it is now or as it last was."""
        self.room_grew |= self.nodes.enter_pod(pod, gone=gone)
        if (pod["metadata"].get("annotations") or {}).get(GROUP_NAME):
            self.ledger.enter_pod(pod, gone=gone)

    def enter_group(self, group: Object, *, gone: bool = False) -> None:
        """A PodGroup as it is now, or as it last was."""
        self.ledger.enter_group(group, gone=gone)

    def enter_job(self, job: Job, *, gone: bool = False) -> None:
        """A Job as it is now, or as it last was."""
        uid = job.metadata.uid
        if gone:
            self._jobs.pop(uid, None)
            return
        shapes, tasks = {}, []
        for task in job.spec.tasks:
            spec = task.template.get("spec") or {}
            shapes[task.name or NAMELESS_TASK] = pod_shape(spec)
            kept = {"spec": {"priorityClassName": spec.get("priorityClassName")}}
            tasks.append(msgspec.structs.replace(task, template=kept))
        known = _JobPods(tuple(tasks), shapes)
        if known != self._jobs.get(uid):
            self._jobs[uid] = known
            self.room_grew = True

    def enter_queue(self, queue: Object, *, gone: bool = False) -> None:
        """A Queue as it is now, or as it last was."""
        name = queue["metadata"]["name"]
        limits = None if gone else queue_limits(queue)
        if limits == self._queues.get(name):
            return  # its status counts what goes on
        if limits is None:
            del self._queues[name]
        else:
            self._queues[name] = limits
        self.room_grew = True

    def enter_class(self, one: Object, *, gone: bool = False) -> None:
        """A PriorityClass as it is now, or as it last was."""
        name = one["metadata"]["name"]
        if gone:
            self._classes.pop(name, None)
        else:
            self._classes[name] = one
        self._priorities = {name: int(one.get("value") or 0) for name, one in self._classes.items()}
        self.room_grew = True

    def answers(self, put_off: PutOff) -> Iterator[tuple[Key, Gang, Wait | None]]:
        """Every waiting gang with its answer: None if it is admitted now, else why it waits.

        Left out are gangs whose Job is not known yet, and those taken back whose pods are not all
        gone.
        """
        waiting: dict[str, tuple[Key, Gang]] = {}
        for uid, (key, gang) in self.ledger.waiting_gangs(self._classes).items():
            booked = self.ledger.gangs[key]
            if self._is_job_known(booked) and not is_clearing(booked):
                pods = tuple(self._not_started(booked).items())
                gang = msgspec.structs.replace(gang, pods=pods, put_off=put_off(gang))
                waiting[uid] = key, gang
        if not waiting:
            return
        place = self._place(lambda gang: True)
        gangs = [gang for _, gang in waiting.values()]
        held = self.ledger.held_by_queue()
        for gang, wait in admissions(gangs, self._queues, place, held):
            yield waiting[gang.uid][0], gang, wait

    def to_let_go(self, gang: BookedGang) -> list[BookedPod]:
        """The pods of a gang that may start now, those that are hardest to place first.

        Of a gang that has not started these are its minimum, once all of it is there; of one that
        has, all. Where there is no minimum, each may start at once.
        """
        if gang.group is None or gang.waits:
            return []
        held = [pod for pod in gang.unbound.values() if pod.is_held and not pod.is_finished]
        if held and gang.phase == "Inqueue" and gang.started() < gang.least:
            held = self._of_minimum(gang, held) if gang.is_complete() else []
        sizes = self._sizes(gang, {pod.task for pod in held})
        return sorted(held, key=lambda pod: (-sizes[pod.task], pod.task, *_in_order(pod)))

    def lost_room(self, gang: BookedGang) -> Wait | None:
        """Why an admitted gang does not fit any more; None if it does, or some of it was let go.

        What is held for other gangs of which nothing was let go does not count: who is complete
        first, goes first.
        """
        if gang.group is None or gang.phase != "Inqueue" or gang.started() or gang.let_go.total():
            return None
        metadata, pods = gang.group["metadata"], tuple(self._not_started(gang).items())
        wanted = Gang(metadata["uid"], metadata["name"], gang.queue, {}, pods=pods)
        return self._place(lambda other: other.let_go.total() > 0).obstacle(wanted)

    def least_urgent(self, keys: Iterable[Key]) -> Key:
        """Of several gangs the one of the lowest priority, of equal ones the youngest."""

        def urgency(key: Key) -> tuple[int, float, Key]:
            group = self.ledger.gangs[key].group or {}
            name = (group.get("spec") or {}).get("priorityClassName")
            created = (group.get("metadata") or {}).get("creationTimestamp", "")
            return priority_of(name, self._classes), -(seconds_of(created) or 0.0), key

        return min(keys, key=urgency)

    def _place(self, counts: Callable[[BookedGang], bool]) -> Nodes:
        """The nodes without what is reserved for gangs that count."""
        place = self.nodes.place()
        reserved: Counter[PodShape] = Counter()
        for gang in self.ledger.gangs.values():
            if (gang.phase == "Inqueue" or gang.let_go.total()) and counts(gang):
                reserved.update(self._reserved(gang))
        place.place(reserved.items())
        return place

    def _reserved(self, gang: BookedGang) -> Counter[PodShape]:
        """The pods that a gang holds room for though they have no node yet.

        Until it has started that is its minimum; then only what was let go, unless it was refused.
        """
        if gang.phase == "Inqueue" and gang.started() < gang.least:
            reserved = self._not_started(gang)
            if reserved:
                return reserved
        refused = Counter(pod.task for pod in gang.refused.values())
        hopeful: Counter[PodShape] = Counter()
        for task, count in (gang.let_go - refused).items():
            hopeful[self._shape(gang, task)] += count
        return hopeful

    def _not_started(self, gang: BookedGang) -> Counter[PodShape]:
        """Those of a gang's minimum that have not started."""
        left = gang.least - gang.started()
        pods: Counter[PodShape] = Counter()
        for task, count in self._minimum(gang).items():
            rest = min(count - gang.standing[task], left)
            if rest > 0:
                pods[self._shape(gang, task)] += rest
                left -= rest
        return pods

    def _of_minimum(self, gang: BookedGang, held: list[BookedPod]) -> list[BookedPod]:
        """Those of the pods that make the minimum full, lowest index first."""
        needed = gang.least - gang.started() - gang.let_go.total()
        ordered = sorted(held, key=_in_order)
        lacking = Counter(self._minimum(gang))
        lacking.subtract(gang.standing)
        lacking.subtract(gang.let_go)
        chosen: list[BookedPod] = []
        others: list[BookedPod] = []
        for pod in ordered:
            (chosen if lacking[pod.task] > 0 else others).append(pod)
            lacking[pod.task] -= 1
        return [*chosen, *others][: max(needed, 0)]

    def _minimum(self, gang: BookedGang) -> dict[str, int]:
        """How many pods of which task make up a gang's minimum."""
        assert gang.group is not None
        spec = gang.group.get("spec") or {}
        counted: dict[str, int] = spec.get("minTaskMember") or {}
        job = self._job(gang)
        if job is None:
            return counted if sum(counted.values()) == gang.least else {"": gang.least}
        tasks = [task for task in job.tasks if task.name in counted]
        made = minimum_pods(tasks, gang.least, self._priorities)
        return {name or NAMELESS_TASK: count for name, count in made.items()}

    def _shape(self, gang: BookedGang, task: str) -> PodShape:
        """The shape of a task's pods; without a Job, an equal part of what the gang requests."""
        job = self._job(gang)
        if job is not None and task in job.shapes:
            return job.shapes[task]
        part = {
            name: ceil(billionths(amount) / max(gang.least, 1))
            for name, amount in gang.minimum.items()
        }
        part[PODS] = billionths(Fraction(1))
        return PodShape(
            tuple(sorted((name, amount) for name, amount in part.items() if amount > 0))
        )

    def _sizes(self, gang: BookedGang, tasks: Iterable[str]) -> dict[str, Fraction]:
        """How large a pod of each task is: the largest part of the cluster that it asks for."""
        capacity = self.nodes.place().capacity
        sizes = {}
        for task in tasks:
            requests = self._shape(gang, task).shown()
            shares = [requests[name] / capacity[name] for name in requests if capacity.get(name)]
            sizes[task] = max(shares, default=Fraction(0))
        return sizes

    def _job(self, gang: BookedGang) -> _JobPods | None:
        return self._jobs.get(_job_uid(gang))

    def _is_job_known(self, gang: BookedGang) -> bool:
        uid = _job_uid(gang)
        return not uid or uid in self._jobs


def _in_order(pod: BookedPod) -> tuple[int, str]:
    """``worker-9`` comes before ``worker-10``."""
    name = pod.key[1]
    return len(name), name


def _job_uid(gang: BookedGang) -> str:
    """UID of the Job that a gang belongs to; empty if to none."""
    for owner in ((gang.group or {}).get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("kind") == JOB.kind and owner.get("apiVersion") == JOB.api_version:
            return str(owner.get("uid", ""))
    return ""
