"""Objects and their changes without end, whatever becomes of the connection meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, EventType, Gone, Unavailable

_FIRST_DELAY_SECONDS = 0.5
_MOST_TRIES = 6


async def changes(
    cluster: Cluster,
    kind: Kind,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    *,
    known: Mapping[str, Object] | None = None,
) -> AsyncIterator[tuple[EventType, Object]]:
    """First all objects there are (as ADDED), then each change.

    A broken watch goes on where it was; what happened before a fresh list shows in that list: all
    objects come once more, and those that are gone as DELETED. Raises Unavailable when the cluster
    has not answered for half a minute. Of ``known`` objects, by UID, those that are gone already
    are told too.
    """
    known = dict(known or {})
    since = ""
    failures = 0
    while True:
        try:
            if not since:
                listed = await cluster.list(kind, namespace, labels)
                present = {obj["metadata"]["uid"]: obj for obj in listed.items}
                gone = [known[uid] for uid in known.keys() - present.keys()]
                known, since, failures = present, listed.resource_version, 0
                for obj in gone:
                    yield EventType.DELETED, obj
                for obj in listed.items:
                    yield EventType.ADDED, obj
            async for event in cluster.watch(kind, since, namespace, labels):
                since, failures = event.object["metadata"]["resourceVersion"], 0
                if event.type is EventType.BOOKMARK:
                    continue
                uid = event.object["metadata"]["uid"]
                if event.type is EventType.DELETED:
                    known.pop(uid, None)
                else:
                    known[uid] = event.object
                yield event.type, event.object
        except Gone:
            since = ""
        except Unavailable as error:
            failures += 1
            if failures == _MOST_TRIES:
                raise
            delay = error.retry_after or _FIRST_DELAY_SECONDS * 2**failures
            await asyncio.sleep(delay)
