"""The operator's cluster: what it asks a server for, and what it makes of the answers."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from canned_server import Canned, canned_server
from full_pods import OWNER, full_pod

from vcjob.api.kinds import COMMAND, EVENT, JOB, NODE, POD, PRIORITY_CLASS, QUEUE, Kind
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    EventType,
    Forbidden,
    NotFound,
    Unavailable,
)
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.operating import OperatorCluster
from vcjob.kubernetes.pacing import Limits
from vcjob.kubernetes.retrying import Patience
from vcjob.kubernetes.scope import EVERYTHING, Scope

Story = Callable[[Canned, OperatorCluster], Awaitable[None]]
HASTY = Patience(first=0.0, longest=0.0)
SOME = Scope("a", cluster_scoped=False)


class Waits:
    """Waits at once, and knows how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


class NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


def play(story: Story, scope: Scope = EVERYTHING, **options: Any) -> Waits:
    waits = Waits()
    options = {"jitter": NoJitter(), "sleep": waits, **options}

    async def run() -> None:
        async with canned_server() as canned:
            async with KubernetesCluster.of(canned.server()) as cluster:
                await story(canned, OperatorCluster(cluster, scope, **options))
            assert not canned.answers, "the test prepared an answer that nobody asked for"

    asyncio.run(run())
    return waits


def listed(*items: dict[str, Any], more: str = "", version: str = "9") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, "continue": more}, "items": list(items)}


def event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def job(name: str, queue: str = "", version: str = "1", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"queue": queue}, "status": status}


def test_pods_of_jobs_are_listed_page_by_page_and_trimmed() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.say(listed(full_pod(0), more="there"))
        canned.say(listed(full_pod(1)))
        pods = (await cluster.list(POD)).items
        assert [pod["metadata"]["name"] for pod in pods] == ["mnist-worker-0", "mnist-worker-1"]
        assert all("spec" not in pod for pod in pods)
        assert [one.query["labelSelector"] for one in canned.asked] == ["volcano.sh/job-name"] * 2
        canned.say(full_pod(0), 201)
        created = await cluster.create(POD, full_pod(0))
        canned.say(full_pod(0))
        patched = await cluster.patch(POD, "default", "mnist-worker-0", {"metadata": {}})
        canned.stream(event("MODIFIED", full_pod(0)))
        watch = cluster.watch(POD, "9")
        seen = (await anext(watch)).object
        await watch.aclose()
        assert created == patched == seen == pods[0]

    play(story)


def test_whoever_places_pods_sees_all_of_them_with_their_requests() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.say(listed(full_pod(0)))
        (pod,) = (await cluster.with_all_pods().list(POD)).items
        assert pod["spec"]["nodeName"] == "node-1"
        assert "labelSelector" not in canned.asked[0].query

    play(story)


def test_each_of_several_namespaces_is_seen_by_itself() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        for place, expected in ((cluster, "a"), (cluster.within("b"), "b")):
            canned.say(listed(job("one"), version="5"))
            assert (await place.list(JOB)).resource_version == "5"
            canned.stream(event("BOOKMARK", job("x", version="8")), cut=asyncio.Event())
            watch = place.watch(JOB, "5")
            assert (await anext(watch)).type is EventType.BOOKMARK
            await watch.aclose()
            assert {one.path.split("/")[5] for one in canned.asked} == {expected}
            canned.asked.clear()

    play(story, SOME)


def test_without_rights_beyond_namespaces_queues_that_jobs_name_are_there() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        for kind in (QUEUE, PRIORITY_CLASS, NODE):
            assert (await cluster.list(kind)).items == []
        canned.say(listed(job("one", "q")))
        await cluster.list(JOB)
        names = [one["metadata"]["name"] for one in (await cluster.list(QUEUE)).items]
        assert names == ["q"]
        watch = cluster.watch(QUEUE, "1")
        assert (await anext(watch)).object["metadata"]["name"] == "q"
        await watch.aclose()

    play(story, SOME)


def test_what_the_server_asks_for_is_waited_for() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.say("busy", 429, {"Retry-After": "3"})
        canned.refuse(503, "ServiceUnavailable", "not now")
        canned.refuse(409, "Conflict", "the quota was changed meanwhile")
        canned.say(full_pod(), 201)
        await cluster.create(POD, full_pod())
        assert [one.method for one in canned.asked] == ["POST"] * 4

    assert play(story).seconds == [3.0, 0.4, 0.8]


@pytest.mark.parametrize("lost", ["broken", "500"])
def test_a_create_that_had_been_carried_out_is_said_to_exist(lost: str) -> None:
    """The Applier looks whose it is."""

    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.break_off() if lost == "broken" else canned.refuse(500, "InternalError", "etcd")
        canned.refuse(409, "AlreadyExists", 'pods "a" already exists')
        with pytest.raises(AlreadyExists):
            await cluster.create(POD, full_pod())

    play(story, patience=HASTY)


def told(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "e", "namespace": "a", "uid": "uid-e"}
    return {"metadata": metadata, "involvedObject": {"uid": OWNER}, "count": 1, **fields}


@pytest.mark.parametrize("ours", [True, False])
def test_an_event_that_had_been_written_is_not_counted_again(ours: bool) -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.break_off()
        canned.refuse(409, "AlreadyExists", "exists")
        canned.say(told(count=1 if ours else 2, source={"component": "vcjob"}))
        if ours:
            assert (await cluster.create(EVENT, told()))["count"] == 1
        else:
            with pytest.raises(AlreadyExists):
                await cluster.create(EVENT, told())

    play(story, patience=HASTY)


def test_an_event_is_tried_twice_at_most() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        for _ in range(2):
            canned.refuse(500, "InternalError", "etcd")
        with pytest.raises(Unavailable):
            await cluster.create(EVENT, told())

    play(story)


PATCH = {"status": {"retryCount": 2, "gone": None}}


@pytest.mark.parametrize(
    ("present", "raised"),
    [
        (job("j", version="8", retryCount=2, more=1), None),
        (job("j", version="8", retryCount=1), Conflict),
        (job("j", version="8", retryCount=2, gone="there"), Conflict),
        ({**job("j", version="8", retryCount=2), "metadata": {"uid": "another"}}, Conflict),
    ],
    ids=["ours", "another's", "half", "another object"],
)
def test_a_conflict_after_a_lost_answer_is_looked_at(
    present: dict[str, Any], raised: type[ClusterError] | None
) -> None:
    async def patch(cluster: OperatorCluster) -> Any:
        return await cluster.patch(
            JOB, "a", "j", PATCH, subresource="status", uid="uid-j", resource_version="7"
        )

    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.break_off()
        canned.refuse(409, "Conflict", "the object has been modified")
        canned.say(present)
        if raised:
            with pytest.raises(raised):
                await patch(cluster)
        else:
            assert (await patch(cluster))["metadata"]["resourceVersion"] == "8"

    play(story, patience=HASTY)


def test_a_conflict_that_was_answered_is_one() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.refuse(409, "Conflict", "the object has been modified")
        with pytest.raises(Conflict):
            await cluster.patch(JOB, "a", "j", PATCH, uid="uid-j", resource_version="7")
        canned.refuse(409, "Conflict", "the UID is another one")
        with pytest.raises(Conflict):
            await cluster.patch(JOB, "a", "j", PATCH, uid="uid-j")

    play(story)


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "NotFound"), (409, "Conflict")], ids=["gone", "a successor"]
)
def test_what_is_gone_after_a_lost_answer_was_deleted(status: int, reason: str) -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.refuse(500, "InternalError", "etcd")
        canned.refuse(status, reason, "no such uid", name="p")
        await cluster.delete(POD, "a", "p", uid="u")
        assert canned.asked[-1].body["preconditions"] == {"uid": "u"}
        canned.refuse(status, reason, "no such uid", name="p")
        with pytest.raises(NotFound if status == 404 else Conflict):
            await cluster.delete(POD, "a", "p", uid="u")

    play(story, patience=HASTY)


def test_without_a_uid_nothing_is_deleted_twice() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.refuse(500, "InternalError", "etcd")
        with pytest.raises(Unavailable):
            await cluster.delete(COMMAND, "a", "c")

    play(story)


def test_what_is_refused_is_not_asked_again() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.refuse(403, "Forbidden", "exceeded quota")
        with pytest.raises(Forbidden):
            await cluster.create(POD, full_pod())

    play(story)


def test_a_read_that_was_lost_is_asked_again() -> None:
    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.refuse(500, "InternalError", "etcd")
        canned.say(job("j"))
        assert (await cluster.get(JOB, "a", "j"))["metadata"]["name"] == "j"

    play(story, patience=HASTY)


def test_every_request_is_told_with_its_kind_and_code() -> None:
    calls: list[tuple[str, Kind | None, int]] = []

    def on_call(verb: str, kind: Kind | None, code: int, seconds: float) -> None:
        assert seconds >= 0
        calls.append((verb, kind, code))

    async def run() -> None:
        async with canned_server() as canned:
            plain = KubernetesCluster.of(canned.server(), on_call=on_call)
            async with plain:
                cluster = OperatorCluster(plain, patience=HASTY)
                canned.break_off()
                canned.refuse(429, "TooManyRequests", "busy")
                canned.say(full_pod(), 201)
                await cluster.create(POD, full_pod())
                canned.say(listed())
                await cluster.list(JOB)

    asyncio.run(run())
    assert calls == [("create", POD, 0), ("create", POD, 429), ("create", POD, 201),
                     ("list", JOB, 200)]  # fmt: skip


def test_writes_of_one_job_take_turns_with_those_of_another() -> None:
    """Creates, patches and deletes of its pods all count as the Job's."""
    order: list[str] = []

    def owned(owner: str, name: str) -> dict[str, Any]:
        pod = full_pod()
        pod["metadata"] |= {"name": name, "uid": f"uid-{name}"}
        pod["metadata"]["ownerReferences"][0]["uid"] = owner
        return pod

    async def answer(request: web.Request) -> web.Response:
        name = (await request.json()).get("metadata", {}).get("name") or request.path.split("/")[-1]
        order.append(name)
        return web.json_response(owned("huge", name))

    async def story(canned: Canned, cluster: OperatorCluster) -> None:
        canned.say(listed(*(owned("huge", f"huge-{number}") for number in range(40))))
        await cluster.list(POD)
        for _ in range(43):
            canned.call(answer)
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                name = f"huge-{number}"
                group.create_task(cluster.delete(POD, "default", name, uid=f"uid-{name}"))
            for number in range(20, 40):
                name = f"huge-{number}"
                group.create_task(cluster.patch(POD, "default", name, {}, uid=f"uid-{name}"))
            for number in range(3):
                group.create_task(cluster.create(POD, owned("small", f"small-{number}")))
        places = [place for place, name in enumerate(order) if name.startswith("small")]
        assert places[-1] <= 6, order

    play(story, limits=Limits(at_once=1))
