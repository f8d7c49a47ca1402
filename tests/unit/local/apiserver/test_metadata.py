"""Metadata that is refused on creation and on change, of every kind."""

import asyncio
from typing import Any

import pytest
from served import JOBS, MAPS, Answer, config_map, job, served

from vcjob.local.apiserver.metadata import MOST_ANNOTATION_BYTES, metadata_problems


def _owner(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-of-{name}", **more}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"annotations": {"a": "x" * MOST_ANNOTATION_BYTES}}, "more than 262,144 are not allowed"),
        ({"ownerReferences": [_owner("a", controller=True), _owner("b", controller=True)]},
         "only one owner can be the controller, not Pod/a and Pod/b"),
        ({"ownerReferences": [_owner("a", uid="")]}, "uid"),
        ({"ownerReferences": [{"name": "a"}]}, "lacks the field"),
        ({"finalizers": ["no name/x"]}, "finalizers"),
        ({"finalizers": [""]}, "finalizers"),
        ({"labels": {"a": "no label"}}, "labels"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [MAPS, JOBS])
def test_wrong_metadata_is_refused(path: str, metadata: dict[str, Any], said: str) -> None:
    async def scenario() -> list[Answer]:
        async with served() as ask:
            body = config_map("a") if path == MAPS else job("a")
            bad = {**body, "metadata": {"name": "a", **metadata}}
            made = await ask("POST", path, bad)
            await ask.made(path, body)
            merge = "application/merge-patch+json"
            patch = {"metadata": metadata}
            return [made, await ask("PATCH", f"{path}/a", patch, type=merge)]

    for answer in asyncio.run(scenario()):
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert said in answer.body["message"]


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"annotations": {"a": "x" * (MOST_ANNOTATION_BYTES - 1)}},
        {"annotations": 5, "ownerReferences": "x"},
        {"ownerReferences": [_owner("a", controller=True), _owner("b", controller=False), 5]},
    ],
)
def test_other_metadata_is_not(metadata: dict[str, Any]) -> None:
    assert list(metadata_problems(metadata)) == []
