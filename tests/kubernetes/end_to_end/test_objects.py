"""What a Job becomes, as recorded from genuine Volcano: every object, field by field."""

import contextlib
import json

import pytest
from end_to_end.operating import Operating, Webhook
from end_to_end.recording import seen
from end_to_end.stored import stored_objects, without_server
from end_to_end.target import Target
from end_to_end.together import Told, tell_together
from end_to_end.world import World
from rendered import RENDERED, cases, differences, recorded_objects

from vcjob.api.kinds import JOB, POD, POD_GROUP, SERVICE, find_kind
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, Forbidden, Invalid

Key = tuple[str, str]
WAITING = frozenset({
    "046-volume-missing-claim", "062-job-name-dot", "065-service-name-collision",
    "063-job-name-leading-digit",  # until Kubernetes 1.35 a Service may not be called so
    "066-secret-collision-ssh", "067-pod-name-taken",
})  # fmt: skip
"""Jobs that wait for something, so that what is made of them is a matter of when one looks."""
REFUSED = frozenset({
    "006-svc-unknown-flag-last", "009-svc-bool-bad", "011-svc-args-in-one-string",
    "012-svc-bare-bool-and-help", "029-ssh-user-key-bad-port", "030-ssh-no-root-legacy-flag",
})  # fmt: skip
"""docs/compatibility.md row 3: Jobs that only Volcano lets in."""
NAMES = [name for name in cases() if name not in WAITING and not RENDERED[name].get("undefaulted")]
GENERATED = "<random>"
ANY_ADDRESS = "<clusterIP>"
OF_CHANCE = ("Secret", "PersistentVolumeClaim")
"""Kinds whose objects Volcano fills, or names, by chance."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        by_volcano = metafunc.config.getoption("controller") == "volcano"
        metafunc.parametrize("name", [one for one in NAMES if by_volcano or one not in REFUSED])


def obstacle(name: str, target: Target) -> str:
    """Why a Job cannot be compared, empty if it can."""
    kinds = {kind for kind, _ in recorded_objects(name)}
    if target.controller == "volcano" and kinds & set(OF_CHANCE):
        return "Volcano's keys and names are random"
    return ""


@pytest.fixture(scope="module")
def made(
    target: Target, operator: Operating | None, request: pytest.FixtureRequest
) -> Told[dict[Key, Object]]:
    """The objects that were made of each Job."""

    async def story(world: World, name: str) -> dict[Key, Object]:
        for obj in RENDERED[name]["before"]:
            kind = find_kind(obj["apiVersion"], obj["kind"])
            assert kind
            create = world.create if kind.namespaced else world.create_apart
            with contextlib.suppress(AlreadyExists):  # what is there for all namespaces
                await create(kind, obj)
        return await make(world, name)

    async def make(world: World, name: str) -> dict[Key, Object]:
        recorded = RENDERED[name]["job"]
        called = recorded["metadata"]["name"].replace(GENERATED, "abcde")
        metadata = {**recorded["metadata"], "name": called}
        await world.create_job({"metadata": metadata, "spec": recorded["spec"]})
        await world.admit()

        wanted = sum(1 for kind, _ in recorded_objects(name) if kind == POD.kind)
        await world.until(lambda: len(world.all(POD)) >= wanted)
        target.save(f"objects-{name}", seen(world))
        job = world.find(JOB, called)
        assert job
        return stored_objects(world, job)

    return tell_together(request, target, story, obstacle, runs_pods=False)


@pytest.mark.timeout(300)  # the first test has the others made too
def test_a_job_becomes_what_volcano_made_of_it(
    name: str, target: Target, made: Told[dict[Key, Object]]
) -> None:
    if reason := obstacle(name, target):
        pytest.skip(reason)
    found = {
        (kind, called.replace("abcde", GENERATED)): json.loads(
            json.dumps(obj).replace("abcde", GENERATED)
        )
        for (kind, called), obj in made.of(name).items()
    }
    recorded = recorded_objects(name)
    if name.startswith("055") and target.controller == "vcjob":  # docs/compatibility.md row 12
        found = {key: obj for key, obj in found.items() if key[0] != POD_GROUP.kind}
        recorded = {key: obj for key, obj in recorded.items() if key[0] != POD_GROUP.kind}
    assert found.keys() == recorded.keys()
    for key, obj in recorded.items():
        if key[0] == SERVICE.kind and obj["spec"]["clusterIP"] == ANY_ADDRESS:
            for one in (obj, found[key]):
                del one["spec"]["clusterIP"], one["spec"]["clusterIPs"]
    wrong = {
        key: list(
            differences(
                found[key], without_server(obj), key[0],
                bool(RENDERED[name].get("order_varies")), stored=True,
            )
        )
        for key, obj in recorded.items()
    }  # fmt: skip
    assert not {key: problems for key, problems in wrong.items() if problems}


@pytest.mark.parametrize("refused", sorted(REFUSED))
def test_what_only_volcano_lets_in_is_refused_with_the_reason(
    refused: str, target: Target, webhook: Webhook | None
) -> None:
    if target.controller == "volcano":
        pytest.skip("Volcano lets it in")
    recorded = RENDERED[refused]["job"]
    if webhook:
        reason = webhook.admit(recorded).reason
    else:

        async def story(world: World) -> None:
            await world.try_job(recorded)

        with pytest.raises((Invalid, Forbidden)) as found:
            target.play(story)
        reason = str(found.value)
    assert "spec.plugins" in reason
