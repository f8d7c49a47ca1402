"""That the EndpointSlices of Services are kept as they are to be."""

import asyncio
import time

import pytest

from vcjob.api.kinds import ENDPOINT_SLICE, POD, SERVICE
from vcjob.api.types import Object
from vcjob.controller.cluster import NotFound
from vcjob.local.endpoint_slice_objects import MANAGER, MANAGER_LABEL
from vcjob.local.endpoint_slices import EndpointSlices
from vcjob.local.store import Store

LABELS = {"app": "web"}
READY = {
    "podIP": "10.0.0.2",
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
}


async def _check_following() -> None:
    store = Store(time.time)
    events = store.watch(ENDPOINT_SLICE, "0")
    problems: list[str] = []
    keeping = asyncio.create_task(EndpointSlices(store, problems.append, 0.01).run())
    writes = 0

    async def until(endpoints: int) -> Object:
        nonlocal writes
        async for event in events:
            writes += 1
            if len(event.object["endpoints"]) == endpoints and event.type != "DELETED":
                return event.object
        raise AssertionError("a watch has no end")

    async with asyncio.timeout(20):
        await store.create(SERVICE, {"metadata": {"name": "web"}, "spec": {"selector": LABELS}})
        empty = await until(0)
        for number in range(100):
            name = f"p{number}"
            metadata = {"name": name, "labels": LABELS}
            await store.create(POD, {"metadata": metadata, "spec": {"containers": []}})
            await store.patch(POD, "default", name, {"status": READY}, subresource="status")
        name = (await until(100))["metadata"]["name"]
        assert name == empty["metadata"]["name"]
        assert writes < 10  # the pods came without a pause, so that one write is usual

        await store.delete(ENDPOINT_SLICE, "default", name)
        await until(100)  # it comes back

        strange = {"endpoints": [], "metadata": {"labels": {MANAGER_LABEL: "x"}}}
        await store.patch(ENDPOINT_SLICE, "default", name, strange)
        again = await until(100)  # it is put right
        assert again["metadata"]["labels"][MANAGER_LABEL] == MANAGER

        await store.delete(SERVICE, "default", "web")
        with pytest.raises(NotFound):
            await store.get(ENDPOINT_SLICE, "default", name)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert keeping.cancelled()
    assert problems == []


def test_slices_follow_services_and_pods_with_few_writes() -> None:
    asyncio.run(_check_following())
