"""Secrets that may not be listed: the controller asks for those of its Jobs, by name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.kinds import JOB, SECRET, Kind
from vcjob.api.names import ssh_secret_name
from vcjob.api.types import Object
from vcjob.controller.cluster import Forbidden, ObjectList

NAME = "j"
OURS = ssh_secret_name(NAME)


class SecretsByName(Faulty):
    """A cluster that lets nobody list or watch Secrets."""

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        if kind == SECRET:
            raise Forbidden("secrets is forbidden: cannot list")
        return await super().list(kind, namespace, labels)


class NoSecrets(SecretsByName):
    """A cluster that lets nobody read Secrets."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        if kind == SECRET:
            raise Forbidden("secrets is forbidden: cannot get")
        return await super().get(kind, namespace, name)


def by_name(story: Callable[[Simulation], Awaitable[Any]]) -> None:
    simulated(story, wrap=SecretsByName, controller_options={"unwatched": (SECRET,)})


def job(replicas: int = 2) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    task = {"name": "worker", "replicas": replicas, "minAvailable": 1, "template": template}
    spec = {"minAvailable": 1, "maxRetry": 3, "queue": "default", "schedulerName": "volcano",
            "plugins": {"svc": [], "ssh": []}, "tasks": [task]}  # fmt: skip
    return {"metadata": {"name": NAME}, "spec": spec}


async def started(s: Simulation) -> dict[str, Any]:
    """A Job that runs; its Secret."""
    await s.run_job(job())
    assert await s.phase(NAME) == "Running"
    secret: dict[str, Any] = await s.store.get(SECRET, s.namespace, OURS)
    return secret


def test_a_new_controller_finds_the_keys_of_the_old_one() -> None:
    async def story(s: Simulation) -> None:
        before = await started(s)
        made = list(s.key_pairs_made)
        await s.crash()
        await s.start()
        await s.settle()
        await s.delete_pod(f"{NAME}-worker-0")  # so that there is something to do
        await s.settle()
        assert await s.store.get(SECRET, s.namespace, OURS) == before
        assert s.key_pairs_made == made

    by_name(story)


def test_a_secret_that_somebody_deleted_comes_back_when_it_is_to_be_changed() -> None:
    async def story(s: Simulation) -> None:
        before = await started(s)
        await s.store.delete(SECRET, s.namespace, OURS)
        tasks = [{**(await s.job(NAME))["spec"]["tasks"][0], "replicas": 3}]
        await s.patch_job(NAME, {"spec": {"tasks": tasks}})
        await s.advance(5)
        after = await s.store.get(SECRET, s.namespace, OURS)
        assert after["data"]["id_rsa"] == before["data"]["id_rsa"]
        assert after["data"]["config"] != before["data"]["config"]

    by_name(story)


def test_somebody_elses_secret_is_in_the_way_and_stays() -> None:
    async def story(s: Simulation) -> None:
        theirs = {"metadata": {"name": OURS, "namespace": s.namespace}, "data": {"a": "Yg=="}}
        stored = await s.store.create(SECRET, theirs)
        await s.create_job(job())
        await s.settle()
        assert (await s.status(NAME))["state"]["reason"] == "NameTaken"
        assert await s.store.get(SECRET, s.namespace, OURS) == stored
        await s.store.delete(SECRET, s.namespace, OURS)
        await s.advance(60)
        assert "id_rsa" in (await s.store.get(SECRET, s.namespace, OURS))["data"]

    by_name(story)


def test_without_the_right_to_read_secrets_the_job_says_so() -> None:
    async def story(s: Simulation) -> None:
        await s.create_job(job())
        await s.settle()
        state = (await s.status(NAME))["state"]
        assert state["reason"] == "SecretError"
        assert "secrets is forbidden" in state["message"]

    options = {"unwatched": (SECRET,)}
    simulated(story, wrap=NoSecrets, controller_options=options)


def test_nothing_is_remembered_of_a_job_that_is_gone() -> None:
    async def story(s: Simulation) -> None:
        await started(s)
        uid = (await s.job(NAME))["metadata"]["uid"]
        await s.store.delete(JOB, s.namespace, NAME)
        await s.settle()
        assert s.controller is not None
        assert uid not in s.controller.records.by_uid

        await started(s)  # a namesake gets keys of its own

    by_name(story)
