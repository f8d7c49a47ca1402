"""Volcano's controller and scheduler, as far as they are seen: they hold Leases and renew them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from vcjob.api.kinds import LEASE
from vcjob.api.types import Object
from vcjob.controller.cluster import Forbidden, NotFound
from vcjob.core.times import micro_timestamp
from vcjob.kubernetes.installing.installation import VOLCANO_NAMESPACE
from vcjob.local.store import Store


async def hold(
    store: Store, holder: str, seconds: int = 15, *, lease: str, namespace: str = VOLCANO_NAMESPACE
) -> None:
    """Take or renew a Lease; without a holder, give it back."""
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "renewTime": micro_timestamp(time.time()),
        "leaseTransitions": 3,
    }
    try:
        await store.patch(LEASE, namespace, lease, {"spec": spec})
    except NotFound:
        metadata = {"name": lease, "namespace": namespace}
        await store.create(LEASE, {"metadata": metadata, "spec": spec})


@contextlib.asynccontextmanager
async def renewing(
    store: Store, holder: str, *, lease: str, namespace: str = VOLCANO_NAMESPACE
) -> AsyncIterator[None]:
    """Be at work while the block runs; the Lease stays as it was renewed last."""

    async def go_on() -> None:
        while True:
            await hold(store, holder, lease=lease, namespace=namespace)
            await asyncio.sleep(0.005)

    await hold(store, holder, lease=lease, namespace=namespace)
    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Closed(Store):
    """A store whose Leases may not be read while it is ``closed``; there are none."""

    closed = True

    async def get(self, kind: object, namespace: str, name: str) -> Object:
        if self.closed:
            raise Forbidden("no")
        raise NotFound("none")
