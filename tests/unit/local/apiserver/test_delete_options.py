"""Options of deletions: what is kept to, and what is refused before anything is deleted."""

import asyncio
from typing import Any

import pytest
from served import MAPS, PODS, Answer, config_map, pod, served


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, 200),
        ({"kind": "DeleteOptions", "apiVersion": "v1"}, 200),
        ({"gracePeriodSeconds": 0, "propagationPolicy": "Foreground"}, 200),
        ({"orphanDependents": True}, 200),
        ({"preconditions": None, "dryRun": []}, 200),
        ({"preconditions": {"uid": "other"}}, 409),
        ({"preconditions": {"resourceVersion": "1"}}, 409),
        ({"preconditions": "x"}, 422),
        ({"preconditions": {"uid": 5}}, 422),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"propagationPolicy": ["Orphan"]}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"orphanDependents": "yes"}, 422),
        ({"gracePeriodSeconds": -1}, 422),
        ({"gracePeriodSeconds": "5"}, 422),
        ({"gracePeriodSeconds": True}, 422),
        ({"dryRun": ["Some"]}, 422),
        ({"dryRun": "All"}, 422),
        ({"kind": "ConfigMap"}, 400),
        ([], 400),
    ],
)
@pytest.mark.parametrize("path", [f"{MAPS}/a", MAPS])
def test_a_deletion_keeps_to_its_options(path: str, options: Any, code: int) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with served() as ask:
            await ask.made(MAPS, config_map("a"))
            answer = await ask("DELETE", path, options)
            return answer, await ask("GET", f"{MAPS}/a")

    answer, left = asyncio.run(scenario())

    assert answer.code == code
    assert left.code == (404 if code == 200 else 200)


@pytest.mark.parametrize(
    ("query", "code", "gone"),
    [
        ({"propagationPolicy": "Orphan"}, 200, True),
        ({"propagationPolicy": "Sideways"}, 422, False),
        ({"gracePeriodSeconds": "x"}, 400, False),
        ({"orphanDependents": "true", "propagationPolicy": "Orphan"}, 422, False),
        ({"dryRun": "All"}, 200, False),
    ],
)
def test_options_may_stand_in_the_url(query: dict[str, str], code: int, gone: bool) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with served() as ask:
            await ask.made(MAPS, config_map("a"))
            return await ask("DELETE", f"{MAPS}/a", **query), await ask("GET", f"{MAPS}/a")

    answer, left = asyncio.run(scenario())

    assert answer.code == code
    assert left.code == (404 if gone else 200)


@pytest.mark.parametrize(
    ("eviction", "code"),
    [
        ({"metadata": 5}, 422),
        ({"deleteOptions": "x"}, 422),
        ({"deleteOptions": {"preconditions": [1]}}, 422),
        ({"deleteOptions": {"dryRun": ["Some"]}}, 422),
        ({"kind": "Binding"}, 400),
        ({"metadata": {"name": "q"}}, 400),
        ([], 400),
    ],
)
def test_an_eviction_that_makes_no_sense_is_refused(eviction: Any, code: int) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with served() as ask:
            await ask.made(PODS, pod("p"))
            answer = await ask("POST", f"{PODS}/p/eviction", eviction)
            return answer, await ask("GET", f"{PODS}/p")

    answer, left = asyncio.run(scenario())

    assert answer.code == code
    assert "conditions" not in left.body["status"]


def test_namespaces_are_deleted_one_by_one() -> None:
    async def scenario() -> Answer:
        async with served() as ask:
            return await ask("DELETE", "/api/v1/namespaces")

    assert asyncio.run(scenario()).code == 405
