"""What a run of a container that ended leaves: its reason, and its last word."""

from pathlib import Path
from typing import Any

import pytest
from fake_node import Scene, container, play

from vcjob.api.types import Object


def ended_of(pod: Object) -> dict[str, Any]:
    """How the first container ended."""
    found: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return found


@pytest.mark.parametrize(
    ("facts", "code", "reason", "message"),
    [
        ({"started": False}, 127, "StartError", "what it said"),
        ({"out_of_memory": True}, 137, "OOMKilled", ""),
        ({}, 3, "Error", ""),
    ],
)
def test_the_reason_of_an_end(
    tmp_path: Path, facts: dict[str, bool], code: int, reason: str, message: str
) -> None:
    async def story(stage: Scene) -> None:
        await stage.create(restartPolicy="Never")
        await stage.node.started("main")
        stage.node.exit("main", code, "what it said\n", **facts)
        failed = await stage.phase("Failed")
        ended = ended_of(failed)
        assert (ended["exitCode"], ended["reason"]) == (code, reason)
        assert ended.get("message", "") == message

    play(tmp_path, story)


def test_a_failed_container_can_show_the_end_of_its_log(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        main = container("main", terminationMessagePolicy="FallbackToLogsOnError")
        await stage.create(restartPolicy="Never", containers=[main])
        await stage.node.started("main")
        stage.node.exit("main", 1, "no such file\n")
        failed = await stage.phase("Failed")
        ended = ended_of(failed)
        assert ended["message"] == "no such file\n"

    play(tmp_path, story)
