"""Keeping the books of gangs: what there is on a cluster, and whatever becomes of it."""

import asyncio
from collections.abc import Callable
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
        cluster: Jobs, PodGroups, Queues and PriorityClasses.
        everything: all nodes, and the pods of everybody; trimmed if need be.
        books: where all of it is entered.
        clock: the time, for pauses after failures.
        forget: gets the UID of each PodGroup that is no more.
    """

    def __init__(
        self,
        cluster: Cluster,
        everything: Cluster,
        books: ClusterBooks,
        clock: Clock,
        forget: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._forget = forget
        self._books = books
        self._generations: dict[str, object] = {}
        self._takes: dict[Kind, tuple[Cluster, Take]] = {
            NODE: (everything, books.enter_node),
            POD: (everything, books.enter_pod),
            JOB: (cluster, self._take_job),
            QUEUE: (cluster, books.enter_queue),
            PRIORITY_CLASS: (cluster, books.enter_class),
            POD_GROUP: (cluster, self._take_group),
        }
        self._unlisted = set(self._takes)
        self.changed = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether all that there is has been seen."""
        return not self._unlisted

    async def run(self) -> None:
        """Keep the books until cancelled; ``changed`` is set after each change."""
        async with asyncio.TaskGroup() as tasks:
            for kind, (cluster, take) in self._takes.items():
                listed = partial(self._unlisted.discard, kind)
                changed = self.changed.set
                tasks.create_task(
                    follow(cluster, kind, take, self._clock, listed=listed, changed=changed)
                )

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
