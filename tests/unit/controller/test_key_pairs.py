"""Keys are made once for a Job, whatever happens to pods, Secret and controller."""

import asyncio
import base64
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from faults import ONE_OBJECT, Fault, Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, SECRET
from vcjob.api.types import Object
from vcjob.controller.key_pairs import make_key_pair, stored_pairs
from vcjob.local.store import Store
from vcjob.plugins.base import KeyPair, KeyPairNeed
from vcjob.plugins.ssh_keys import fits

PAIR = ["rsa-2048", "ed25519"]
NEED = KeyPairNeed("lock", "ed25519", "lc-lock", "private", "public")


def job(replicas: int = 2, **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    return apply_defaults(
        {"metadata": {"name": "lc"}, "spec": {"tasks": [task], "plugins": {"ssh": []}, **spec}}
    )


async def secret(world: Simulation) -> dict[str, str]:
    data = (await world.store.get(SECRET, "default", "lc-ssh"))["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def secrets_seen(world: Simulation, seen: list[Object]) -> asyncio.Task[None]:
    async def follow() -> None:
        async for event in world.store.watch(SECRET, "0"):
            seen.append(event.object)  # noqa: PERF401 - the watch never ends

    return asyncio.create_task(follow())


@pytest.mark.parametrize("algorithm", PAIR)
def test_a_pair_is_real_and_in_the_form_that_ssh_reads(algorithm: str, tmp_path: Path) -> None:
    pair, other = (asyncio.run(make_key_pair(algorithm)) for _ in range(2))
    assert pair.private != other.private
    assert fits(pair.private, pair.public)
    assert not fits(pair.private, other.public)
    assert pair.public.endswith("\n")
    if algorithm == "rsa-2048":
        key = load_pem_private_key(pair.private.encode(), None)
        assert isinstance(key, RSAPrivateKey)
        assert key.key_size == 2048
        assert pair.private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    if keygen := shutil.which("ssh-keygen"):
        file = tmp_path / "key"
        file.write_text(pair.private)
        file.chmod(0o600)
        shown = subprocess.run(
            [keygen, "-y", "-f", file], capture_output=True, text=True, check=True
        )
        assert shown.stdout.split()[:2] == pair.public.split()[:2]


def test_an_algorithm_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="dsa"):
        asyncio.run(make_key_pair("dsa"))


def test_making_keys_does_not_hold_up_others() -> None:
    async def story() -> bool:
        making = asyncio.ensure_future(make_key_pair("rsa-2048"))
        await asyncio.sleep(0)
        went_on = not making.done()
        await making
        return went_on

    assert asyncio.run(story())


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"private": "cw==", "public": "cA=="}, {"lock": KeyPair("s", "p")}),
        ({"private": "cw=="}, {}),
        ({"private": "cw==", "public": ""}, {}),
        ({"private": "no base64!", "public": "cA=="}, {}),
        ({"private": "gA==", "public": "cA=="}, {}),
        (None, {}),
    ],
)
def test_stored_pairs_are_whole_ones(data: Any, found: dict[str, KeyPair]) -> None:
    assert stored_pairs([NEED], {(SECRET, "lc-lock"): {"data": data}}) == found
    assert stored_pairs([NEED], {}) == {}


def test_the_library_is_not_loaded_before_a_key_is_made() -> None:
    code = (
        "import sys, vcjob.cli.main, vcjob.local.engine\n"
        "from vcjob.plugins.registry import installed_plugins\n"
        "plugins = installed_plugins(third_party=False)\n"
        "[plugins.find(name) for name in plugins.names()]\n"
        "sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_keys_outlive_restarts_of_pods_and_of_the_controller() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(policies=[{"event": "PodFailed", "action": "RestartJob"}]))
        before = await secret(world)
        assert before["id_rsa"] == "private rsa-2048 1"
        await world.end_pod("lc-worker-0", 1)
        await world.settle()
        assert (await world.status("lc"))["retryCount"] == 1
        await world.crash()
        await world.start()
        await world.settle()
        assert await secret(world) == before
        assert world.key_pairs_made == PAIR

    simulated(story)


def test_a_host_that_comes_later_is_in_the_configuration_and_the_keys_stay() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job(1))
        before = await secret(world)
        tasks = (await world.job("lc"))["spec"]["tasks"]
        await world.patch_job("lc", {"spec": {"tasks": [{**tasks[0], "replicas": 2}]}})
        await world.settle()
        after = await secret(world)
        assert "Host lc-worker-1\n" not in before.pop("config")
        assert "Host lc-worker-1\n" in after.pop("config")
        assert after == before

    simulated(story)


def test_a_job_that_changed_while_suspended_goes_on_with_its_keys_and_all_hosts() -> None:
    """User cases P49 and P50: whoever starts first finds, and waits for, all that there are now."""

    async def story(world: Simulation) -> None:
        await world.run_job(job(1))
        before = await secret(world)
        await world.command("lc", "AbortJob")
        await world.settle()
        assert await world.phase("lc") == "Aborted"
        tasks = (await world.job("lc"))["spec"]["tasks"]
        await world.patch_job("lc", {"spec": {"tasks": [{**tasks[0], "replicas": 3}]}})
        await world.command("lc", "ResumeJob")
        await world.settle()
        await world.admit()
        await world.settle()
        assert len(await world.pods()) == 3
        after = await secret(world)
        assert "Host lc-worker-2\n" in after.pop("config")
        assert "originalhost" in before.pop("config")
        assert after == before

    simulated(story)


def test_a_secret_that_somebody_deleted_comes_back_with_the_same_keys() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = await secret(world)
        await world.crash()
        await world.start()
        await world.settle()
        await world.store.delete(SECRET, "default", "lc-ssh")
        await world.settle()
        assert await secret(world) == before
        assert world.key_pairs_made == PAIR

    simulated(story)


def test_a_key_that_somebody_took_out_comes_back() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = await secret(world)
        await world.store.patch(SECRET, "default", "lc-ssh", {"data": {"id_rsa": None}})
        await world.settle()
        assert await secret(world) == before

    simulated(story)


def test_keys_lost_while_no_controller_ran_are_made_anew_once() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.crash()
        await world.store.delete(SECRET, "default", "lc-ssh")
        await world.start()
        await world.settle()
        assert (await secret(world))["id_rsa"] == "private rsa-2048 3"
        assert world.key_pairs_made == PAIR * 2

    simulated(story)


def test_a_secret_that_lost_its_label_is_found_again() -> None:
    """The controller watches objects with its label only; the name tells in the end."""

    async def story(world: Simulation) -> None:
        await world.run_job(job())
        before = await secret(world)
        await world.crash()
        await world.store.patch(SECRET, "default", "lc-ssh", {"metadata": {"labels": None}})
        await world.start()
        await world.settle()
        await world.advance(100)
        assert await secret(world) == before

    simulated(story)


def test_a_secret_of_somebody_else_is_left_alone_and_named() -> None:
    async def story(world: Simulation) -> None:
        metadata = {"name": "lc-ssh", "namespace": "default"}
        theirs = await world.store.create(SECRET, {"metadata": metadata, "data": {"mine": "eA=="}})
        await world.run_job(job())
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "NameTaken"
        assert "Secret lc-ssh exists and does not belong to this Job" in state["message"]
        assert await world.store.get(SECRET, "default", "lc-ssh") == theirs
        assert await world.pods() == []
        await world.store.delete(SECRET, "default", "lc-ssh")
        await world.advance(100)
        assert (await secret(world))["id_rsa"] == "private rsa-2048 1"
        assert world.key_pairs_made == PAIR

    simulated(story)


def test_a_job_that_has_ended_gets_no_keys() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_running()
        await world.settle()
        assert await world.phase("lc") == "Completed"
        await world.crash()
        await world.store.delete(SECRET, "default", "lc-ssh")
        await world.start()
        await world.settle()
        assert world.key_pairs_made == PAIR

    simulated(story)


def test_a_library_that_cannot_be_loaded_is_named_until_it_can() -> None:
    async def story(world: Simulation) -> None:
        make, broken = world.make_key_pair, [True]

        async def maybe(algorithm: str) -> KeyPair:
            if broken:
                raise ImportError("libcrypto is for another machine")
            return await make(algorithm)

        world.make_key_pair = maybe  # type: ignore[method-assign]
        await world.crash()
        await world.start()
        await world.run_job(job())
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "KeysNotMade"
        assert "libcrypto is for another machine; install the package" in state["message"]
        broken.clear()
        await world.advance(100)
        await world.admit()
        await world.settle()
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]

    simulated(story)


def test_each_job_has_keys_of_its_own() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.store.delete(JOB, "default", "lc")
        await world.settle()
        await world.run_job(job())
        assert (await secret(world))["id_rsa"] == "private rsa-2048 3"

    simulated(story)


def test_no_key_is_in_events_or_in_the_job() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.end_running(1)
        await world.settle()
        shown = f"{await world.events()} {await world.job('lc')} {await world.pods()}"
        assert "private rsa-2048" not in shown
        assert base64.b64encode(b"private rsa-2048 1").decode() not in shown

    simulated(story)


@pytest.mark.parametrize("fault", ONE_OBJECT)
def test_no_fault_at_any_write_gives_pods_two_pairs(fault: Fault) -> None:
    """Whatever is lost or comes late: the first pair that was stored is the only one."""
    clusters: list[Faulty] = []

    def faulty(store: Store) -> Faulty:
        clusters.append(Faulty(store))
        return clusters[-1]

    async def story(world: Simulation, at: int) -> int:
        seen: list[Object] = []
        follower = secrets_seen(world, seen)
        clusters[-1].arm(fault, at)
        await world.run_job(job(1))
        tasks = (await world.job("lc"))["spec"]["tasks"]
        await world.patch_job("lc", {"spec": {"tasks": [{**tasks[0], "replicas": 2}]}})
        await world.settle()
        await world.advance(10)
        await world.admit()
        await world.advance(10)
        follower.cancel()
        assert {one["data"]["id_rsa"] for one in seen} == {seen[0]["data"]["id_rsa"]}
        assert {one["data"]["id_ed25519"] for one in seen} == {seen[0]["data"]["id_ed25519"]}
        assert "Host lc-worker-1\n" in (await secret(world))["config"]
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]
        return clusters[-1].writes

    writes = simulated(lambda world: story(world, 10**6), wrap=faulty)
    assert writes > 5
    for at in range(writes):
        simulated(lambda world, at=at: story(world, at), wrap=faulty)
