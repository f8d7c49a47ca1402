"""Deletion: finalizers, graces, preconditions, and who goes with whom in which order."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, JOB, POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict
from vcjob.local.store import Store


def run(story: Callable[[Store], Coroutine[Any, Any, None]]) -> None:
    numbers = itertools.count(1)
    store = Store(lambda: 1_700_000_000.0, new_uid=lambda: f"{next(numbers):032x}")
    asyncio.run(asyncio.wait_for(story(store), 20))


def owned(name: str, *owners: Object, blocks: bool = True, **metadata: Any) -> Object:
    references = [
        {"kind": "Job", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
         "blockOwnerDeletion": blocks}
        for owner in owners
    ]  # fmt: skip
    return {"metadata": {"name": name, "ownerReferences": references, **metadata}}


async def names(there: Store, kind: Kind) -> list[str]:
    return sorted(one["metadata"]["name"] for one in (await there.list(kind)).items)


async def bound_pod(there: Store, obj: Object) -> Object:
    await there.create(POD, {**obj, "spec": {}})
    patch = {"spec": {"nodeName": "here"}}
    return await there.patch(POD, "default", obj["metadata"]["name"], patch)


def test_a_pod_with_finalizers_stays_until_they_are_off_and_its_node_has_ended_it() -> None:
    async def story(there: Store) -> None:
        for name in ("node-first", "finalizer-first"):
            await bound_pod(there, {"metadata": {"name": name, "finalizers": ["mine"]}})
            left = await there.delete(POD, "default", name)
            assert left["metadata"]["deletionGracePeriodSeconds"] == 30
        off = {"metadata": {"finalizers": None}}

        await there.delete(POD, "default", "node-first", grace_period_seconds=0)
        there_still = await there.get(POD, "default", "node-first")
        assert there_still["metadata"]["deletionGracePeriodSeconds"] == 0
        await there.patch(POD, "default", "finalizer-first", off)
        assert await names(there, POD) == ["finalizer-first", "node-first"]

        await there.patch(POD, "default", "node-first", off)
        await there.delete(POD, "default", "finalizer-first", grace_period_seconds=0)
        assert await names(there, POD) == []

    run(story)


@pytest.mark.parametrize("precondition", ["uid", "resource_version"])
def test_another_object_than_the_one_that_is_meant_stays(precondition: str) -> None:
    async def story(there: Store) -> None:
        made = await there.create(CONFIG_MAP, {"metadata": {"name": "c"}})
        with pytest.raises(Conflict):
            await there.delete(CONFIG_MAP, "default", "c", **{precondition: "77"})
        metadata = made["metadata"]
        given = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
        gone = await there.delete(CONFIG_MAP, "default", "c", **given)
        assert gone["metadata"]["uid"] == metadata["uid"]
        assert await names(there, CONFIG_MAP) == []

    run(story)


def test_in_the_foreground_all_dependents_go_first_and_theirs_before_them() -> None:
    async def story(there: Store) -> None:
        top = await there.create(JOB, {"metadata": {"name": "top"}})
        middle = await there.create(JOB, owned("middle", top))
        await bound_pod(there, owned("p", middle))
        await there.create(CONFIG_MAP, owned("not-blocking", top, blocks=False))
        left = await there.delete(JOB, "default", "top", propagation="Foreground")
        assert left["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert await names(there, JOB) == ["middle", "top"]
        assert await names(there, CONFIG_MAP) == []
        await there.delete(POD, "default", "p", grace_period_seconds=0)
        assert await names(there, JOB) == []

    run(story)


def test_in_the_foreground_what_somebody_else_owns_too_is_only_let_go() -> None:
    async def story(there: Store) -> None:
        one = await there.create(JOB, {"metadata": {"name": "one"}})
        other = await there.create(JOB, {"metadata": {"name": "other"}})
        await there.create(CONFIG_MAP, owned("shared", one, other))
        await there.delete(JOB, "default", "one", propagation="Foreground")
        assert await names(there, JOB) == ["other"]
        shared = await there.get(CONFIG_MAP, "default", "shared")
        owners = [owner["name"] for owner in shared["metadata"]["ownerReferences"]]
        assert owners == ["other"]

    run(story)


def test_a_foreground_deletion_waits_for_other_finalizers_too() -> None:
    async def story(there: Store) -> None:
        job = await there.create(JOB, {"metadata": {"name": "j", "finalizers": ["mine"]}})
        await bound_pod(there, owned("p", job))
        await there.delete(JOB, "default", "j", propagation="Foreground")
        await there.delete(POD, "default", "p", grace_period_seconds=0)
        left = await there.get(JOB, "default", "j")
        assert left["metadata"]["finalizers"] == ["mine"]
        await there.patch(JOB, "default", "j", {"metadata": {"finalizers": None}})
        assert await names(there, JOB) == []

    run(story)


async def waiting_owner(there: Store, **metadata: Any) -> Object:
    """A ConfigMap in a foreground deletion that a dependent with a finalizer holds up."""
    owner = await there.create(CONFIG_MAP, {"metadata": {"name": "owner", **metadata}})
    await there.create(CONFIG_MAP, owned("last", owner, finalizers=["mine"]))
    await there.delete(CONFIG_MAP, "default", "owner", propagation="Foreground")
    await there.delete(CONFIG_MAP, "default", "owner", propagation="")
    assert await names(there, CONFIG_MAP) == ["last", "owner"]
    return owner


@pytest.mark.parametrize("propagation", ["Orphan", "Background"])
def test_another_way_of_deletion_ends_one_in_the_foreground(propagation: str) -> None:
    async def story(there: Store) -> None:
        await waiting_owner(there)
        await there.delete(CONFIG_MAP, "default", "owner", propagation=propagation)
        assert await names(there, CONFIG_MAP) == ["last"]

    run(story)


def test_it_does_not_end_the_waiting_for_other_finalizers() -> None:
    async def story(there: Store) -> None:
        await waiting_owner(there, finalizers=["others"])
        left = await there.delete(CONFIG_MAP, "default", "owner", propagation="Orphan")
        assert left["metadata"]["finalizers"] == ["others"]
        await there.patch(CONFIG_MAP, "default", "owner", {"metadata": {"finalizers": None}})
        assert await names(there, CONFIG_MAP) == ["last"]

    run(story)


@pytest.mark.parametrize(
    "references", [None, [{"kind": "Job", "name": "owner", "uid": "", "blockOwnerDeletion": False}]]
)
def test_a_dependent_that_is_let_go_no_longer_holds_its_owner_up(references: Any) -> None:
    async def story(there: Store) -> None:
        owner = await waiting_owner(there)
        if references:
            references[0]["uid"] = owner["metadata"]["uid"]
        patch = {"metadata": {"ownerReferences": references}}
        await there.patch(CONFIG_MAP, "default", "last", patch)
        assert await names(there, CONFIG_MAP) == ["last"]

    run(story)


def test_orphans_stay_also_where_finalizers_keep_their_owner() -> None:
    async def story(there: Store) -> None:
        job = await there.create(JOB, {"metadata": {"name": "j", "finalizers": ["mine"]}})
        await there.create(CONFIG_MAP, owned("c", job))
        await there.delete(JOB, "default", "j", propagation="Orphan")
        await there.patch(JOB, "default", "j", {"metadata": {"finalizers": None}})
        assert await names(there, CONFIG_MAP) == ["c"]
        assert await names(there, JOB) == []

    run(story)


def test_whoever_loses_its_last_owner_by_a_change_goes() -> None:
    async def story(there: Store) -> None:
        await there.create(CONFIG_MAP, {"metadata": {"name": "c"}})
        gone = {"metadata": {"ownerReferences": [{"kind": "Job", "name": "x", "uid": "gone"}]}}
        await there.patch(CONFIG_MAP, "default", "c", gone)
        assert await names(there, CONFIG_MAP) == []

    run(story)


def test_a_circle_of_owners_ends() -> None:
    async def story(there: Store) -> None:
        one = await there.create(CONFIG_MAP, {"metadata": {"name": "one"}})
        other = await there.create(CONFIG_MAP, owned("other", one))
        await there.patch(CONFIG_MAP, "default", "one", owned("one", other))
        await there.delete(CONFIG_MAP, "default", "one")
        assert await names(there, CONFIG_MAP) == []

    run(story)
