"""What is there before any user makes an object, in a new store and in one of an earlier engine."""

import asyncio
import time

from vcjob.api.kinds import NAMESPACE, NODE
from vcjob.local.first_objects import make_first_objects
from vcjob.local.store import Store


def test_a_node_and_namespaces_are_there_and_the_node_tells_what_is_so_now() -> None:
    async def story() -> None:
        store = Store(time.time)
        await make_first_objects(store, "here", {"cpu": "2"})
        mark = {"metadata": {"labels": {"kubernetes.io/arch": "old", "mine": "stays"}}}
        await store.patch(NODE, "", "here", mark)
        await make_first_objects(store, "here", {"cpu": "4"})
        (node,) = (await store.list(NODE)).items
        assert node["status"]["capacity"]["cpu"] == "4"
        assert node["metadata"]["labels"]["mine"] == "stays"
        assert node["metadata"]["labels"]["kubernetes.io/arch"] != "old"
        namespaces = (await store.list(NAMESPACE)).items
        names = {obj["metadata"]["name"]: obj["metadata"]["labels"] for obj in namespaces}
        assert names == {
            name: {"kubernetes.io/metadata.name": name} for name in ("default", "kube-system")
        }

    asyncio.run(story())
