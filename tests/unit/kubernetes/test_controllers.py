"""One controller for each namespace: what keeps one from its work stops no other."""

import asyncio
import gc
from typing import Any

from vcjob.api.kinds import JOB, Kind
from vcjob.controller.cluster import Forbidden, ObjectList
from vcjob.controller.controller import Controller
from vcjob.kubernetes.controllers import Controllers
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins


class Closed(Store):
    async def list(self, kind: Kind, *arguments: Any, **more: Any) -> ObjectList:
        raise Forbidden("closed")


def test_one_that_may_not_look_keeps_no_other_waiting() -> None:
    async def scenario() -> None:
        stores = {"open": Store(lambda: 0.0), "closed": Closed(lambda: 0.0)}
        plugins = installed_plugins(third_party=False)
        controllers = Controllers(
            {name: Controller(store, plugins) for name, store in stores.items()}
        )
        of = dict(controllers)
        running = asyncio.create_task(controllers.run())
        spec = {"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {}}}]}
        metadata = {"name": "lc", "namespace": "open"}
        await stores["open"].create(JOB, {"metadata": metadata, "spec": spec})
        async for event in stores["open"].watch(JOB, "0"):
            if event.object.get("status"):
                break
        assert (of["open"].synced, of["closed"].synced) == (True, False)
        assert [job.metadata.name for job in controllers.jobs()] == ["lc"]
        assert next(iter(of["closed"].troubles.values())).endswith("closed")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    before = gc.get_threshold()
    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert gc.get_threshold() == before
