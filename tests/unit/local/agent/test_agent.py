"""The agent: which pods are its own, and how it stops."""

import asyncio
import gc
from pathlib import Path
from typing import Any

from fake_node import Scene, play, scene

from vcjob.local.node.client import NodeGone


def test_pods_of_other_nodes_are_left_alone(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(nodeName="elsewhere")
        await stage.create("second")
        await stage.node.started("main")
        assert stage.network.joined == ["second"]

    play(tmp_path, story)


def test_an_agent_that_is_stopped_while_a_container_starts_leaves_no_complaint(
    tmp_path: Path,
) -> None:
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, complaint: complaints.append(complaint))
        async with scene(tmp_path) as stage:
            stage.node.hold = loop.create_future()
            await stage.create()
            await stage.node.asked.wait()
        stage.node.hold.set_exception(NodeGone("the node is gone"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # the start hears of it; what it says is dropped with its task

    asyncio.run(main())
    gc.collect()
    assert complaints == []
