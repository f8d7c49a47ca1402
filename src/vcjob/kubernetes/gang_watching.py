"""Keeping the books of gangs: what there is on a cluster, and whatever becomes of it."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from vcjob.api.kinds import JOB, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import Cluster
from vcjob.controller.reading import read_job
from vcjob.core.scheduling.cluster_books import ClusterBooks
from vcjob.kubernetes.gang_following import Take, follow


class GangWatching:
    """Follows all kinds that decisions about gangs need.

    Args:
        cluster: Queues and PriorityClasses.
        places: where Jobs and PodGroups are, such as each of some namespaces. If there are several,
            one that is closed to us keeps nothing of the others waiting.
        everything: all nodes, and the pods of everybody; trimmed if need be.
        books: where all of it is entered.
        clock: the time, for pauses after failures.
        forget: gets the UID of each PodGroup that is no more.
    """

    def __init__(
        self,
        cluster: Cluster,
        places: Sequence[Cluster],
        everything: Cluster,
        books: ClusterBooks,
        clock: Clock,
        forget: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._forget = forget
        self._books = books
        self._generations: dict[str, object] = {}
        self._takes: list[tuple[Kind, Cluster, Take]] = [
            (NODE, everything, books.enter_node),
            (POD, everything, books.enter_pod),
            *((JOB, place, self._take_job) for place in places),
            (QUEUE, cluster, books.enter_queue),
            (PRIORITY_CLASS, cluster, books.enter_class),
            *((POD_GROUP, place, self._take_group) for place in places),
        ]
        self._several = len(places) > 1
        self._unlisted = set(range(len(self._takes)))
        self.changed = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether all that there is has been seen."""
        return not self._unlisted

    async def run(self) -> None:
        """Keep the books until cancelled; ``changed`` is set after each change."""
        async with asyncio.TaskGroup() as tasks:
            for number, (kind, cluster, take) in enumerate(self._takes):
                following = follow(
                    cluster, kind, take, self._clock,
                    listed=partial(self._unlisted.discard, number), changed=self.changed.set,
                    may_be_closed=self._several and kind in (JOB, POD_GROUP),
                )  # fmt: skip
                tasks.create_task(following)

    def _take_job(self, obj: Object, /, *, gone: bool) -> None:
        """A Job is read again only when its spec has changed."""
        metadata = obj["metadata"]
        uid, generation = metadata["uid"], metadata.get("generation")
        if gone:
            self._generations.pop(uid, None)
        elif generation is not None and self._generations.get(uid) == generation:
            return
        else:
            self._generations[uid] = generation
        job, _ = read_job(obj)
        self._books.enter_job(job, gone=gone)

    def _take_group(self, group: Object, /, *, gone: bool) -> None:
        if gone:
            self._forget(group["metadata"]["uid"])
        self._books.enter_group(group, gone=gone)
