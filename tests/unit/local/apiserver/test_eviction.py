import asyncio
from typing import Any

import pytest
from served import PODS, Asking, pod, served

from vcjob.api.kinds import POD


def _evicted(eviction: dict[str, Any], *, phase: str = "Running", **query: str) -> tuple[int, Any]:
    """How an eviction of a bound pod is answered, and the pod as it is then."""

    async def run() -> tuple[int, Any]:
        async with served() as ask:
            await _bound(ask, phase)
            answer = await ask("POST", f"{PODS}/p/eviction", eviction, **query)
            return answer.code, (await ask("GET", f"{PODS}/p")).body

    return asyncio.run(run())


async def _bound(ask: Asking, phase: str) -> None:
    await ask.made(PODS, pod("p"))
    await ask.store.patch(POD, "default", "p", {"spec": {"nodeName": "n"}})
    other = {"type": "Ready", "status": "True"}
    status = {"phase": phase, "conditions": [other]}
    await ask.store.patch(POD, "default", "p", {"status": status}, subresource="status")


def test_a_pod_is_marked_and_then_deleted_with_its_grace() -> None:
    code, left = _evicted({"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 7}})
    assert code == 201
    ready, mark = left["status"]["conditions"]
    assert ready["type"] == "Ready"
    assert (mark["type"], mark["status"]) == ("DisruptionTarget", "True")
    assert mark["reason"] == "EvictionByEvictionAPI"
    assert left["metadata"]["deletionGracePeriodSeconds"] == 7


def test_one_that_has_ended_is_gone_at_once() -> None:
    code, left = _evicted({}, phase="Failed")
    assert (code, left["code"]) == (201, 404)


@pytest.mark.parametrize(
    ("eviction", "query", "code"),
    [
        ({"deleteOptions": {"preconditions": {"uid": "another"}}}, {}, 409),
        ({"deleteOptions": {"preconditions": {"resourceVersion": "1"}}}, {}, 409),
        ({"metadata": {"name": "q"}}, {}, 400),
        ({}, {"dryRun": "All"}, 201),
        ({"deleteOptions": {"dryRun": ["All"]}}, {}, 201),
    ],
)
def test_what_is_refused_or_only_tried_changes_nothing(
    eviction: dict[str, Any], query: dict[str, str], code: int
) -> None:
    answered, left = _evicted(eviction, **query)
    assert answered == code
    assert "deletionTimestamp" not in left["metadata"]
    assert len(left["status"]["conditions"]) == 1


def test_the_version_that_is_asked_for_may_be_the_present_one() -> None:
    async def run() -> int:
        async with served() as ask:
            await _bound(ask, "Running")
            version = (await ask("GET", f"{PODS}/p")).body["metadata"]["resourceVersion"]
            options = {"deleteOptions": {"preconditions": {"resourceVersion": version}}}
            return (await ask("POST", f"{PODS}/p/eviction", options)).code

    assert asyncio.run(run()) == 201
