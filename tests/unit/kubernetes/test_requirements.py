"""What a cluster lacks, in words: kinds, and verbs on resources."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web
from canned_server import canned_server

from vcjob.api.kinds import JOB, POD
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, Forbidden, Unavailable
from vcjob.controller.readiness import Readiness
from vcjob.kubernetes import requirements
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.conditions import Condition
from vcjob.kubernetes.operator_options import OperatorOptions
from vcjob.kubernetes.requirements import (
    ACCESS_REVIEW,
    Question,
    Requirements,
    missing_kinds,
    questions,
    refused,
    sentence,
)

SERVED = {
    "batch.volcano.sh/v1alpha1": ["jobs", "jobs/status"],
    "scheduling.volcano.sh/v1beta1": ["podgroups", "queues"],
    "bus.volcano.sh/v1alpha1": ["commands"],
}


def answer_discovery(server: Any, served: dict[str, list[str]]) -> None:
    for group in SERVED:
        if group in served:
            server.say({"resources": [{"name": name} for name in served[group]]})
        else:
            server.say("404 page not found", 404)


@pytest.mark.parametrize(
    ("served", "missing"),
    [
        (SERVED, []),
        ({}, ["jobs.batch.volcano.sh", "commands.bus.volcano.sh",
              "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"]),
        ({**SERVED, "scheduling.volcano.sh/v1beta1": ["queues"]},
         ["podgroups.scheduling.volcano.sh"]),
    ],
)  # fmt: skip
def test_missing_kinds_are_named_as_their_definitions(
    served: dict[str, list[str]], missing: list[str]
) -> None:
    async def scenario() -> None:
        async with canned_server() as server, KubernetesCluster.of(server.server()) as cluster:
            answer_discovery(server, served)
            assert sorted(await missing_kinds(cluster)) == sorted(missing)
            assert [one.path for one in server.asked] == [f"/apis/{group}" for group in SERVED]

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", ["[1]", "null", '{"resources": ["jobs"]}', "<html>", ""])
def test_what_no_api_server_answers_is_waited_for(answer: str) -> None:
    async def scenario() -> None:
        async with canned_server() as server, KubernetesCluster.of(server.server()) as cluster:
            server.say(answer)
            with pytest.raises(Unavailable, match="is it an API server"):
                await missing_kinds(cluster)

    asyncio.run(scenario())


class Reviewing:
    """Answers reviews: no to what ``denies`` says."""

    def __init__(self, *denied: tuple[str, str]) -> None:
        self.denied = set(denied)
        self.closed: tuple[str, ...] = ()
        self.asked: list[dict[str, str]] = []
        self.error: Exception | None = None

    async def create(self, kind: Any, obj: Object) -> Object:
        assert kind == ACCESS_REVIEW
        if self.error:
            raise self.error
        attributes = obj["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        allowed = (attributes["verb"], attributes["resource"]) not in self.denied
        allowed = allowed and attributes.get("namespace") not in self.closed
        return {**obj, "status": {"allowed": allowed}}


def ask(reviewing: Reviewing, options: OperatorOptions) -> list[Question]:
    return asyncio.run(refused(cast(Cluster, reviewing), questions(options)))


def test_each_right_is_asked_for_where_it_is_needed() -> None:
    everywhere, some = Reviewing(), Reviewing()
    assert ask(everywhere, OperatorOptions()) == []
    assert {"verb": "patch", "group": JOB.group, "version": JOB.version, "resource": "jobs",
            "subresource": "status"} in everywhere.asked  # fmt: skip
    assert {"verb": "list", "version": "v1", "resource": "nodes"} in everywhere.asked
    ask(some, OperatorOptions(namespaces=("a", "b"), scheduler="volcano"))
    pods = [one["namespace"] for one in some.asked if one["resource"] == "pods"]
    assert set(pods) == {"a", "b"}
    assert not [one for one in some.asked if one["resource"] in ("nodes", "queues")]


def test_what_is_denied_is_said_by_verb_resource_and_namespace() -> None:
    reviewing = Reviewing(("create", "pods"), ("delete", "pods"), ("list", "podgroups"))
    denied = ask(reviewing, OperatorOptions(namespaces=("ml",), scheduler="volcano"))
    assert {question.right.kind for question in denied} >= {POD}
    assert sentence(denied) == (
        'create and delete pods in namespace "ml"; '
        'list podgroups.scheduling.volcano.sh in namespace "ml"'
    )


def test_who_may_not_ask_finds_out_by_trying() -> None:
    reviewing = Reviewing()
    reviewing.error = Forbidden("no")
    assert ask(reviewing, OperatorOptions()) == []


def test_a_server_that_takes_the_question_and_does_not_answer_is_named_after_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requirements, "_DISCOVERY_SECONDS", 0.05)

    async def scenario() -> None:
        stuck = asyncio.Event()

        async def wait(_: web.Request) -> web.StreamResponse:
            await stuck.wait()
            return web.Response()

        async with canned_server() as server, KubernetesCluster.of(server.server()) as cluster:
            server.call(wait)
            with pytest.raises(Unavailable, match="did not answer in time when asked to get /apis"):
                await missing_kinds(cluster)
            stuck.set()

    asyncio.run(scenario())


class Everything:
    """A cluster whose kinds and rights the test changes."""

    def __init__(self) -> None:
        self.served = dict(SERVED)
        self.reviewing = Reviewing()
        self.error: Exception | None = None

    @property
    def connection(self) -> Any:
        return self

    async def request(self, method: str, path: str, asked: Any, *, seconds: float) -> Any:
        if self.error:
            raise self.error
        return self.served.get(path.removeprefix("/apis/"), [])

    def decode(self, answer: list[str], asked: Any, decode: Callable[[bytes], Any]) -> Any:
        return decode(msgspec.json.encode({"resources": [{"name": name} for name in answer]}))

    async def create(self, kind: Any, obj: Object) -> Object:
        return await self.reviewing.create(kind, obj)


async def is_met(
    there: Everything, readiness: Readiness, options: OperatorOptions | None = None
) -> bool:
    """Whether the first look of Requirements says that it can begin."""
    wanted = Requirements(cast(KubernetesCluster, there), options or OperatorOptions(), readiness)
    met = asyncio.create_task(wanted.met())
    await asyncio.wait({met}, timeout=0.05)
    done = met.done()
    met.cancel()
    await asyncio.gather(met, return_exceptions=True)
    return done


@pytest.mark.parametrize(
    ("spoil", "condition", "words", "begins"),
    [
        (lambda there: None, None, "", True),
        (lambda there: there.served.clear(), Condition.KINDS,
         "vcjob manifests | kubectl apply -f -", False),
        (lambda there: there.reviewing.denied.add(("watch", "pods")), Condition.RIGHTS,
         "we may not watch pods; nothing is decided until we may", False),
        (lambda there: there.reviewing.denied.add(("create", "services")), Condition.RIGHTS,
         "we may not create services; Jobs that need it wait", True),
        (lambda there: setattr(there, "error", Unavailable("nothing answers at x")),
         Condition.SERVER, "nothing answers at x", False),
    ],
    ids=["all well", "kinds", "blind", "hands tied", "silence"],
)  # fmt: skip
def test_what_is_missing_is_told_and_waited_for_where_nothing_can_be_known_without(
    spoil: Any, condition: Condition | None, words: str, begins: bool
) -> None:
    async def scenario() -> None:
        there, readiness = Everything(), Readiness()
        spoil(there)
        assert await is_met(there, readiness) is begins
        assert readiness.ready is (condition is None)
        if condition:
            assert words in readiness.of(condition)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("closed", "waits", "begins"),
    [(("b",), "nothing is decided there until we may", True),
     (("a", "b"), "nothing is decided until we may", False)],
)  # fmt: skip
def test_a_namespace_that_is_closed_keeps_no_other_waiting(
    closed: tuple[str, ...], waits: str, begins: bool
) -> None:
    async def scenario() -> None:
        there, readiness = Everything(), Readiness()
        there.reviewing.closed = closed
        options = OperatorOptions(namespaces=("a", "b"))
        assert await is_met(there, readiness, options) is begins
        assert f'in namespace "b"; {waits}' in readiness.of(Condition.RIGHTS)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("denied", "line"),
    [
        ({(verb, "secrets") for verb in ("create", "delete", "get")},
         "secrets: we may not create, delete and get secrets: Jobs with the plugin ssh wait"),
        ({("patch", "queues")},
         "queues: we may not patch queues.scheduling.volcano.sh/status; patch "
         "queues.scheduling.volcano.sh: Queues are not opened, closed or counted"),
        ({("create", "events")},
         "events: we may not create events: what happens is told by no Events"),
    ],
)  # fmt: skip
def test_what_is_dispensable_is_missed_by_an_operator_that_works(
    denied: set[tuple[str, str]], line: str
) -> None:
    async def scenario() -> None:
        there, readiness = Everything(), Readiness()
        there.reviewing.denied |= denied
        assert await is_met(there, readiness)
        assert readiness.ready
        assert readiness.text() == f"ready\n{line}\n"

    asyncio.run(scenario())
