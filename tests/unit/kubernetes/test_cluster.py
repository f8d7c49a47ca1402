"""``Cluster`` over HTTP: lists in pieces, watches that go on, preconditions."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from canned_server import Canned, canned_server

from vcjob.api.kinds import CONFIG_MAP, JOB, POD
from vcjob.controller.cluster import Conflict, EventType, Gone, Unavailable
from vcjob.kubernetes import cluster as module
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.tables import Column, Row, fetch_table

Story = Callable[[Canned, KubernetesCluster], Awaitable[None]]


def play(story: Story, **options: Any) -> None:
    async def run() -> None:
        async with canned_server() as canned:
            async with KubernetesCluster.of(canned.server()) as cluster:
                await story(canned, cluster)
            assert not canned.answers, "the test prepared an answer that nobody asked for"

    asyncio.run(run())


def pod(name: str, version: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"{name}-1", "resourceVersion": str(version)}}


def pods(*names: str, more: str = "", version: str = "9") -> dict[str, Any]:
    metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
    return {"kind": "PodList", "metadata": metadata, "items": [pod(name) for name in names]}


def event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def test_a_list_is_read_in_pieces_and_says_what_its_items_are() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(pods("a", more="token"))
        canned.say(pods("b"))
        listed = await cluster.list(POD, "here", {"x": "y", "z": "w"})
        assert [item["metadata"]["name"] for item in listed.items] == ["a", "b"]
        assert {(item["apiVersion"], item["kind"]) for item in listed.items} == {("v1", "Pod")}
        assert listed.resource_version == "9"
        first, second = canned.asked
        assert first.path == "/api/v1/namespaces/here/pods"
        assert first.query == {"labelSelector": "x=y,z=w", "limit": "500"}
        assert second.query == {**first.query, "continue": "token"}

    play(story)


def test_a_list_that_changed_too_much_meanwhile_is_read_at_once() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(pods("a", more="token"))
        canned.refuse(410, "Expired", "the provided continue parameter is too old")
        canned.say(pods("a", "b"))
        assert len((await cluster.list(POD, selector="!x")).items) == 2
        assert canned.asked[-1].query == {"labelSelector": "!x"}

    play(story)


def test_a_watch_goes_on_after_its_end_from_the_last_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SHORTEST_WATCH_SECONDS", 0.01)

    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        added, rest = event("ADDED", pod("a", 4)), event("MODIFIED", pod("ü" * 90_000, 5))
        canned.stream(added[:9], added[9:] + rest[:70_001], rest[70_001:])
        canned.stream(event("BOOKMARK", {"metadata": {"resourceVersion": "8"}}))
        canned.stream(event("DELETED", pod("a", 9)))
        watch = cluster.watch(POD, "3", "here", {"x": "y"})
        events = [await anext(watch) for _ in range(4)]
        assert [one.type for one in events] == [
            EventType.ADDED, EventType.MODIFIED, EventType.BOOKMARK, EventType.DELETED,
        ]  # fmt: skip
        assert events[1].object["metadata"]["name"] == "ü" * 90_000
        assert [one.query["resourceVersion"] for one in canned.asked] == ["3", "5", "8"]
        assert canned.asked[0].query["allowWatchBookmarks"] == "true"
        assert canned.asked[0].query["labelSelector"] == "x=y"
        assert 300 <= int(canned.asked[0].query["timeoutSeconds"]) <= 600
        await watch.aclose()  # type: ignore[attr-defined]

    play(story)


def test_a_watch_that_is_too_old_is_gone_told_early_or_late() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.refuse(410, "Expired", "too old resource version")
        with pytest.raises(Gone):
            await anext(cluster.watch(POD, "1"))
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        canned.stream(event("ADDED", pod("a", 4)), event("ERROR", status))
        watch = cluster.watch(POD, "1")
        assert (await anext(watch)).type is EventType.ADDED
        with pytest.raises(Gone):
            await anext(watch)

    play(story)


@pytest.mark.parametrize(
    ("pieces", "cut"),
    [
        ([event("ADDED", pod("b", 5))[:20]], True),
        ([event("ADDED", pod("b", 5))[:20]], False),
        ([b"<html>\n"], False),
        ([event("ADDED", {})], False),
        ([event("ADDED", {"metadata": {"name": "b", "resourceVersion": "5"}})], False),
        ([event("SOMETHING", pod("b", 5))], False),
        ([event("ERROR", {"code": 500, "message": "etcd"})], False),
    ],
    ids=["cut", "ended in an event", "no JSON", "no metadata", "no UID", "unknown type", "error"],
)
def test_a_watch_that_breaks_says_so_after_all_that_was_whole(
    pieces: list[bytes], cut: bool
) -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        read = asyncio.Event()
        canned.stream(event("ADDED", pod("a", 4)), *pieces, cut=read if cut else None)
        watch = cluster.watch(POD, "1")
        assert (await anext(watch)).object["metadata"]["name"] == "a"
        read.set()
        with pytest.raises(Unavailable):
            await anext(watch)

    play(story)


def test_an_object_is_created_where_it_says() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(pod("a"), 201)
        await cluster.create(POD, {"metadata": {"name": "a", "namespace": "here"}, "spec": {}})
        (asked,) = canned.asked
        assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/here/pods")
        assert asked.body["apiVersion"] == "v1"
        assert asked.body["kind"] == "Pod"

    play(story)


def test_a_patch_carries_its_conditions() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(pod("a"))
        patch = {"metadata": {"labels": {"a": "b"}}}
        await cluster.patch(CONFIG_MAP, "here", "a", patch, uid="u", resource_version="7")
        (asked,) = canned.asked
        assert asked.method == "PATCH"
        assert asked.headers["Content-Type"] == "application/merge-patch+json"
        assert asked.body == {
            "metadata": {"labels": {"a": "b"}, "uid": "u", "resourceVersion": "7"}
        }
        assert patch == {"metadata": {"labels": {"a": "b"}}}, "objects are shared"

    play(story)


def test_a_status_is_written_only_to_the_very_object() -> None:
    """The status subresource of a custom resource takes no notice of a UID in the patch."""

    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say({"metadata": {"uid": "u", "resourceVersion": "7"}})
        canned.say(pod("a"))
        await cluster.patch(JOB, "here", "a", {"status": {}}, subresource="status", uid="u")
        assert canned.asked[1].path.endswith("/jobs/a/status")
        assert canned.asked[1].body["metadata"]["resourceVersion"] == "7"
        canned.say({"metadata": {"uid": "other", "resourceVersion": "7"}})
        with pytest.raises(Conflict):
            await cluster.patch(JOB, "here", "a", {"status": {}}, subresource="status", uid="u")

    play(story)


def test_a_deletion_says_how() -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say({})
        await cluster.delete(POD, "here", "a", uid="u", grace_period_seconds=0)
        body = canned.asked[0].body
        assert body["preconditions"] == {"uid": "u"}
        assert body["gracePeriodSeconds"] == 0
        assert body["propagationPolicy"] == "Background"

    play(story)


@pytest.mark.parametrize(
    "answer", ["<html>log in</html>", [1], {"items": None}, {"metadata": {"name": "a"}}]
)
def test_who_answers_something_else_is_no_api_server(answer: Any) -> None:
    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(answer)
        with pytest.raises(Unavailable, match="is it an API server"):
            await cluster.get(POD, "here", "a")

    play(story)


def test_a_table_is_read_in_pieces() -> None:
    def table(name: str, more: str = "") -> dict[str, Any]:
        return {
            "kind": "Table",
            "metadata": {"continue": more},
            "columnDefinitions": [{"name": "Name", "type": "string", "priority": 0}],
            "rows": [{"cells": [name], "object": {"metadata": {"name": name}}}],
        }

    async def story(canned: Canned, cluster: KubernetesCluster) -> None:
        canned.say(table("a", "more"))
        canned.say(table("b"))
        got = await fetch_table(cluster.connection, POD, "here", selector="x=y")
        assert got.columns == (Column("Name"),)
        assert got.rows == (Row(("a",), {"name": "a"}), Row(("b",), {"name": "b"}))
        assert "as=Table" in canned.asked[0].headers["Accept"]
        canned.say(pods("a"))
        with pytest.raises(Unavailable, match="no Table"):
            await fetch_table(cluster.connection, POD)

    play(story)
