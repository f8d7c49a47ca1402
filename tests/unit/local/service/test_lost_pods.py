"""Pods whose engine ended are Failed, with a reason that policies know."""

import asyncio
from typing import Any

import pytest

from vcjob.api.kinds import POD
from vcjob.local.service.lost_pods import fail_lost_pods
from vcjob.local.store import Store

RUNNING = {
    "phase": "Running",
    "startTime": "2026-01-01T00:00:00Z",
    "podIP": "10.0.0.1",
    "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "then"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "then"},
    ],
    "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
    "containerStatuses": [
        {"name": "a", "ready": True, "started": True, "restartCount": 2, "containerID": "vcjob://1",
         "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}},
        {"name": "b", "state": {"waiting": {"reason": "ContainerCreating"}}},
    ],
}  # fmt: skip


def after(node: str, status: dict[str, Any]) -> dict[str, Any]:
    async def story() -> dict[str, Any]:
        store = Store(lambda: 0.0)
        spec = {"nodeName": node} if node else {}
        await store.create(POD, {"metadata": {"name": "p"}, "spec": spec})
        await store.patch(POD, "default", "p", {"status": status}, subresource="status")
        await fail_lost_pods(store, "here", 1_700_000_000.0)
        found: dict[str, Any] = (await store.get(POD, "default", "p"))["status"]
        return found

    return asyncio.run(story())


def test_a_pod_that_ran_has_failed_and_its_containers_have_ended() -> None:
    status = after("here", RUNNING)
    assert (status["phase"], status["reason"]) == ("Failed", "NodeLost")
    assert "engine" in status["message"]
    scheduled, ready = status["conditions"]
    assert scheduled["status"] == "True"
    assert (ready["status"], ready["lastTransitionTime"]) == ("False", "2023-11-14T22:13:20Z")
    ran, waited = status["containerStatuses"]
    assert (ran["ready"], ran["restartCount"]) == (False, 2)
    ended = ran["state"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"]) == (137, "2026-01-01T00:00:01Z")
    assert "startedAt" not in waited["state"]["terminated"]
    assert status["initContainerStatuses"] == RUNNING["initContainerStatuses"]


def test_a_pod_that_still_lacked_something_is_as_it_was_when_it_was_bound() -> None:
    waits = {
        "phase": "Pending",
        "conditions": RUNNING["conditions"],
        "containerStatuses": [
            {"name": "a", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}
        ],
    }
    set_up = {"startTime": "2026-01-01T00:00:00Z", "podIP": "10.0.0.1", "podIPs": [{}]}
    assert after("here", {**waits, **set_up}) == waits


@pytest.mark.parametrize(
    ("node", "status"),
    [
        ("", {"phase": "Pending"}),
        ("here", {"phase": "Pending"}),  # bound, and nothing of it has run: it can still start
        ("elsewhere", RUNNING),
        ("here", {**RUNNING, "phase": "Succeeded"}),
        ("here", {**RUNNING, "phase": "Failed", "reason": "Evicted"}),
    ],
)
def test_other_pods_are_left_alone(node: str, status: dict[str, Any]) -> None:
    assert after(node, status) == status
