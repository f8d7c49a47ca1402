"""Every Job of a directory is let in and made real, or refused with a reason.

``--manifests DIR`` names the directory; without it the examples of this repository are taken.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.operating import Verdict, Webhook
from end_to_end.recording import seen
from end_to_end.target import Target
from end_to_end.world import World

from vcjob.api.kinds import JOB, PRIORITY_CLASS, QUEUE, find_kind
from vcjob.api.manifest import parse
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, Forbidden, Invalid

EXAMPLES = Path(__file__).parents[3] / "examples"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    directory = metafunc.config.getoption("manifests") or EXAMPLES
    found = sorted(directory.rglob("*.y*ml"))
    files = [file for file in found if b"batch.volcano.sh" in file.read_bytes()]
    metafunc.parametrize("file", files, ids=[str(file.relative_to(directory)) for file in files])


def test_its_jobs_get_all_their_pods_or_are_refused_with_a_reason(
    file: Path, target: Target, webhook: Webhook | None
) -> None:
    manifest = parse(file.read_bytes(), str(file))
    outcomes = [f"cannot be read: {problem.message}" for problem in manifest.problems]
    objects = [document.object for document in manifest.documents]

    async def story(world: World) -> None:
        for obj in sorted(objects, key=lambda obj: bool(obj["kind"] == JOB.kind)):
            if obj["kind"] != JOB.kind:
                await make(world, obj)
                continue
            for needed in needs(obj):
                await make(world, needed)
            outcomes.append(await outcome(world, obj, webhook))
        target.save(f"manifest-{file.stem}", {"outcomes": outcomes, **seen(world)})

    target.play(story)
    assert outcomes
    print(*(f"{file.name}: {said}" for said in outcomes), sep="\n")


def needs(job: Object) -> Iterator[Object]:
    """What an administrator has to make for a Job: its Queue and PriorityClasses."""
    spec = job.get("spec") or {}
    if name := spec.get("queue"):
        yield {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name},
               "spec": {"weight": 1}}  # fmt: skip
    templates = [(task.get("template") or {}).get("spec") or {} for task in spec.get("tasks") or ()]
    for name in {one.get("priorityClassName") or "" for one in (spec, *templates)}:
        if not name or name.startswith("system-"):
            continue  # none, or one of every cluster
        yield {"apiVersion": PRIORITY_CLASS.api_version, "kind": PRIORITY_CLASS.kind,
               "metadata": {"name": name}, "value": 1}  # fmt: skip


async def make(world: World, obj: Object) -> None:
    """Create what Jobs need, for as long as the namespace is there."""
    kind = find_kind(obj["apiVersion"], obj["kind"])
    if kind is None:
        return
    create = world.create if kind.namespaced else world.create_apart
    with contextlib.suppress(AlreadyExists):
        await create(kind, obj)


async def outcome(world: World, job: Object, webhook: Webhook | None) -> str:
    """What becomes of a Job, in words; fails if it is neither made real nor refused."""
    verdict = webhook.admit(job) if webhook else Verdict(job)
    if verdict.object is None:
        assert verdict.reason
        return f"refused: {verdict.reason}"
    try:
        created = await world.create_job(verdict.object)
    except (Invalid, Forbidden) as error:
        if webhook:
            raise AssertionError("the webhook lets in what the server refuses") from error
        return f"refused: {error}"
    before = len(world.made)
    wanted = sum(task.get("replicas", 1) for task in created["spec"]["tasks"])
    while len(world.made) < before + wanted:
        # A task may wait until the pods of another one run.
        await world.admit()
        await world.until(world.pending)
        for name in world.pending():
            await world.run_pod(name)
    assert sorted(world.made) == sorted(set(world.made))
    return f"{wanted} pods"
