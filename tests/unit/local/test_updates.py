"""PUT and other changes: what a client may change, and what it gets when it may not."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict, Invalid, NotFound
from vcjob.local.store import Store

THING = Kind("example.org", "v1", "Thing", "things")


def run(story: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    numbers = itertools.count(1)
    store = Store(lambda: 1_700_000_000.0, new_uid=lambda: f"{next(numbers):032x}")
    asyncio.run(asyncio.wait_for(story(store), 20))


def changed(obj: Object, **fields: Any) -> Object:
    """A copy as a client sends it back, with other top-level fields."""
    return {**obj, "metadata": dict(obj["metadata"]), **fields}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uid", None),
        ("creationTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 1),
        ("generation", 77),
        ("namespace", "other"),
        ("name", "other"),
    ],
)
def test_a_put_keeps_what_no_client_changes(field: str, value: Any) -> None:
    async def story(there: Store) -> None:
        old = await there.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": "b"}})
        wish = changed(old)
        wish["metadata"] = {**wish["metadata"], field: value, "resourceVersion": ""}
        assert await there.replace(CONFIG_MAP, "default", "c", wish) is old

    run(story)


def test_a_put_replaces_all_else() -> None:
    async def story(there: Store) -> None:
        metadata = {"name": "c", "labels": {"a": "b"}, "annotations": {"c": "d"}}
        await there.create(CONFIG_MAP, {"metadata": metadata, "data": {"a": "b"}})
        wish = {"metadata": {"name": "c", "labels": {"e": "f"}}, "binaryData": {}}
        new = await there.replace(CONFIG_MAP, "default", "c", wish)
        assert "annotations" not in new["metadata"]
        assert new["metadata"]["labels"] == {"e": "f"}
        assert "data" not in new
        assert new["apiVersion"] == "v1"

    run(story)


def test_a_put_of_another_version_or_object_is_a_conflict() -> None:
    async def story(there: Store) -> None:
        old = await there.create(CONFIG_MAP, {"metadata": {"name": "c"}})
        await there.replace(CONFIG_MAP, "default", "c", changed(old, data={"a": "b"}))
        for stale in (changed(old), {"metadata": {"name": "c", "uid": "another"}}):
            with pytest.raises(Conflict):
                await there.replace(CONFIG_MAP, "default", "c", stale)
        with pytest.raises(NotFound):
            await there.replace(CONFIG_MAP, "default", "d", changed(old))

    run(story)


@pytest.mark.parametrize(
    ("kind", "subresource", "spec", "status", "label"),
    [
        (JOB, "", "new", "old", "new"),
        (JOB, "status", "old", "new", "old"),
        (THING, "", "new", "old", "new"),
        (THING, "status", "old", "new", "old"),
    ],
)
def test_a_put_writes_spec_and_status_apart(
    kind: Kind, subresource: str, spec: str, status: str, label: str
) -> None:
    async def story(there: Store) -> None:
        await there.create(kind, {"metadata": {"name": "x", "labels": {"l": "old"}},
                                  "spec": {"s": "old"}})  # fmt: skip
        both = {"metadata": {"name": "x"}, "status": {"s": "old"}}
        await there.replace(kind, "default", "x", both, subresource="status")
        wish = {"metadata": {"name": "x", "labels": {"l": "new"}},
                "spec": {"s": "new"}, "status": {"s": "new"}}  # fmt: skip
        new = await there.replace(kind, "default", "x", wish, subresource=subresource)
        assert (new["spec"]["s"], new["status"]["s"]) == (spec, status)
        assert new["metadata"]["labels"]["l"] == label
        assert new["metadata"]["generation"] == (2 if spec == "new" else 1)

    run(story)


def test_a_custom_kind_can_have_its_status_in_one_with_the_rest() -> None:
    async def story(there: Store) -> None:
        there.declare(THING, status_subresource=False)
        made = await there.create(THING, {"metadata": {"name": "x"}, "status": {"s": 1}})
        assert made["status"] == {"s": 1}
        there.declare(THING, status_subresource=True)
        new = await there.replace(THING, "default", "x", changed(made, status={"s": 2}))
        assert new is made

    run(story)


def test_a_change_that_changes_nothing_keeps_the_version() -> None:
    async def story(there: Store) -> None:
        old = await there.create(JOB, {"metadata": {"name": "x"}, "spec": {"a": [1, {"b": True}]}})
        equal = changed(old, spec={"a": [1, {"b": True}]})
        assert await there.replace(JOB, "default", "x", equal) is old
        unequal = await there.modify(
            JOB, "default", "x", lambda obj: changed(obj, spec={"a": [1, {"b": 1}]})
        )
        assert unequal["spec"]["a"][1]["b"] is not True
        assert unequal["metadata"]["generation"] == 2

    run(story)


def test_what_stays_the_same_is_shared() -> None:
    async def story(there: Store) -> None:
        old = await there.create(JOB, {"metadata": {"name": "x"}, "spec": {"a": {"b": 1}, "c": 1}})
        new = await there.replace(JOB, "default", "x", changed(old, spec={"a": {"b": 1}, "c": 2}))
        assert new["spec"]["a"] is old["spec"]["a"]

    run(story)


def test_an_object_that_is_being_deleted_gets_no_new_finalizers() -> None:
    async def story(there: Store) -> None:
        metadata = {"name": "c", "finalizers": ["one", "two"]}
        await there.create(CONFIG_MAP, {"metadata": metadata})
        await there.delete(CONFIG_MAP, "default", "c")
        with pytest.raises(Invalid, match="three"):
            await there.patch(
                CONFIG_MAP, "default", "c", {"metadata": {"finalizers": ["one", "three"]}}
            )
        left = await there.patch(CONFIG_MAP, "default", "c", {"metadata": {"finalizers": ["two"]}})
        assert left["metadata"]["finalizers"] == ["two"]

    run(story)


def test_a_dry_run_shows_what_would_be_and_changes_nothing() -> None:
    async def story(there: Store) -> None:
        old = await there.create(CONFIG_MAP, {"metadata": {"name": "c"}})
        version = there.version
        watch = there.watch(CONFIG_MAP, str(version))
        made = await there.create(CONFIG_MAP, {"metadata": {"generateName": "d-"}}, dry_run=True)
        assert made["metadata"]["name"].startswith("d-")
        would = await there.replace(
            CONFIG_MAP, "default", "c", changed(old, data={"a": "b"}), dry_run=True
        )
        assert would["data"] == {"a": "b"}
        await there.delete(CONFIG_MAP, "default", "c", dry_run=True)
        assert (await there.list(CONFIG_MAP)).items == [old]
        assert there.version == version
        await there.create(CONFIG_MAP, {"metadata": {"name": "real"}})
        assert (await anext(watch)).object["metadata"]["name"] == "real"

    run(story)


def test_generated_names_are_free_ones() -> None:
    uids = iter(["0" * 32, "1" * 32, "0" * 32, "2" * 32, "3" * 32])
    there = Store(lambda: 0.0, new_uid=lambda: next(uids))

    async def story() -> None:
        wish = {"metadata": {"generateName": "p-"}, "spec": {}}
        names = [(await there.create(POD, wish))["metadata"]["name"] for _ in range(2)]
        assert names == ["p-00000", "p-22222"]

    asyncio.run(story())
