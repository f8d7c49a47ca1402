"""What users of such systems ran into: races and robustness. Each test names its case."""

from typing import Any

import pytest
from faults import Faulty
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import (
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    QUEUE,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.names import MINIMUM_FIRST
from vcjob.api.types import Object
from vcjob.controller.cluster import Forbidden

GRACE = 120


def job(name: str = "lc", **spec: Any) -> Object:
    container = {"name": "main", "image": "none"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    template["spec"]["terminationGracePeriodSeconds"] = GRACE
    tasks = [{"name": "worker", "replicas": 2, "template": template}]
    return apply_defaults(
        {
            "apiVersion": JOB.api_version,
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"plugins": {"svc": []}, "tasks": tasks, **spec},
        }
    )


async def uid_of(world: Simulation, name: str = "lc") -> str:
    uid: str = (await world.job(name))["metadata"]["uid"]
    return uid


async def owners(world: Simulation) -> set[str]:
    return {pod["metadata"]["ownerReferences"][0]["uid"] for pod in await world.pods()}


async def delete_job(world: Simulation) -> None:
    await world.store.delete(JOB, world.namespace, "lc")


@pytest.mark.parametrize("event", ["PodEvicted", "PodFailed", "*"])
def test_p85_what_happens_to_a_namesakes_pods_decides_nothing(event: str) -> None:
    async def story(world: Simulation) -> None:
        manifest = job(policies=[{"event": event, "action": "TerminateJob"}])
        await world.run_job(manifest)
        await delete_job(world)
        await world.create_job(manifest)
        await world.settle(finish_pods=False)
        await world.end_pod("lc-worker-0", exit_code=1)  # of the old one
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"
        assert await owners(world) == {await uid_of(world)}

    simulated(story)


def test_p86_p88_deleted_and_created_again_and_again_while_old_pods_use_up_their_grace() -> None:
    async def story(world: Simulation) -> None:
        for _ in range(4):
            await world.run_job(job())
            await delete_job(world)
            await world.advance(5, finish_pods=False)
        await world.create_job(job())
        await world.settle(finish_pods=False)
        await world.admit()
        await world.advance(GRACE / 2, finish_pods=False)
        assert await uid_of(world) not in await owners(world)
        assert await world.phase("lc") == "Pending"
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"
        assert await owners(world) == {await uid_of(world)}

    simulated(story)


def test_p87_a_job_that_waits_for_a_namesakes_pods_says_so() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await delete_job(world)
        await world.create_job(job())
        await world.settle(finish_pods=False)
        await world.admit()
        await world.settle(finish_pods=False)
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "WaitingForLeftovers"
        assert "deleted Job of the same name" in state["message"]
        assert any(text.startswith("WaitingForLeftovers") for text in await world.messages())
        await world.settle()
        await world.run_all()
        assert (await world.status("lc"))["state"].get("reason", "") == ""

    simulated(story)


def test_p89_a_pending_job_is_deleted_and_created_again() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job())
        await world.settle()
        await delete_job(world)
        await world.run_job(job())
        assert await world.phase("lc") == "Running"
        assert await owners(world) == {await uid_of(world)}

    simulated(story)


def test_p90_pods_of_a_job_that_was_deleted_meanwhile_are_not_made_again_and_again() -> None:
    made: list[str] = []

    async def story(world: Simulation) -> None:
        async def delete_during_create(kind: Kind, obj: Object) -> None:
            if kind == POD:
                made.append(obj["metadata"]["name"])
                if len(made) == 1:
                    await delete_job(world)

        assert isinstance(world.cluster, Faulty)
        world.cluster.before_create.append(delete_during_create)
        await world.create_job(job())
        await world.settle()
        await world.admit()
        await world.advance(3600)
        assert await world.pod_names() == []
        assert made
        assert len(made) <= 2

    simulated(story, wrap=Faulty)


def test_p92_a_restart_in_a_queue_of_ones_own() -> None:
    async def story(world: Simulation) -> None:
        await world.store.create(QUEUE, {"metadata": {"name": "mine"}, "spec": {"weight": 1}})
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        await world.run_job(job(queue="mine", policies=policies))
        await world.end_pod("lc-worker-1", exit_code=1)
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"state": {}},
        {"state": {"phase": "Running"}},
        {"state": {"phase": "NoSuchPhase"}},
        {"state": {"phase": "Running"}, "taskStatusCount": {"gone": {"phase": {"Running": 3}}}},
        {"state": {"phase": "Pending"}, "controlledResources": {"vcjob.dev/state": "{not json"}},
        {"state": {"phase": "Pending"}, "controlledResources": {"vcjob.dev/state": '{"v":99}'}},
        {"state": {"phase": "Restarting"}, "conditions": [{}]},
        {"running": 7, "version": 3, "retryCount": 1},
    ],
)
def test_p92_whatever_stands_in_the_status_the_job_goes_on(status: Object) -> None:
    async def story(world: Simulation) -> None:
        await world.crash()
        await world.create_job(job())
        await world.store.patch(JOB, "default", "lc", {"status": status}, subresource="status")
        await world.start()
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"
        assert (await world.status("lc"))["running"] == 2
        await world.end_running()
        await world.settle()
        assert await world.phase("lc") == "Completed"

    simulated(story)


def test_p92_what_is_no_job_at_all_disturbs_no_other() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job({"metadata": {"name": "odd"}, "spec": {"tasks": "many"}})
        await world.create_job({"metadata": {"name": "empty"}})
        await world.run_job(job())
        assert await world.phase("lc") == "Running"
        for name, wrong in (("odd", "cannot be read"), ("empty", "has no spec")):
            state = (await world.status(name))["state"]
            assert (state["phase"], state["reason"]) == ("Pending", "Malformed")
            assert wrong in state["message"]
            assert any(name in event["metadata"]["name"] for event in await world.events())
        await world.command("odd", "TerminateJob")
        await world.settle()
        assert await world.phase("odd") == "Terminated"

    simulated(story)


@pytest.mark.parametrize(
    ("wrong", "right", "reason", "words"),
    [
        ({"minAvailable": 9}, {"minAvailable": 2}, "MinAvailable", "is 9, but there are only 2"),
        ({"replicas": -1}, {"replicas": 2}, "Malformed", "replicas is -1"),
        ({"replicas": 2, "minAvailable": 3}, {"replicas": 2, "minAvailable": 1}, "MinAvailable",
         "minAvailable of task worker is 3, but there are only 2 replicas"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_go_together_are_told_until_they_are_put_right(
    wrong: Object, right: Object, reason: str, words: str
) -> None:
    """Admission refuses them; the controller may see them all the same."""

    def with_numbers(numbers: Object) -> Object:
        made = job()
        if "replicas" in numbers:
            made["spec"]["tasks"][0] |= numbers
        else:
            made["spec"] |= numbers
        return made

    async def story(world: Simulation) -> None:
        await world.create_job(with_numbers(wrong))
        await world.settle()
        await world.admit()
        await world.advance(100)
        await _is_told(world, reason, words)
        await _other_job_runs(world)
        await world.patch_job("lc", {"spec": with_numbers(right)["spec"]})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize("crash", [False, True])
def test_pods_of_a_job_that_can_no_longer_be_read_stay_until_it_can(crash: bool) -> None:
    async def story(world: Simulation) -> None:
        manifest = job(policies=[{"event": "PodEvicted", "action": "RestartJob"}])
        await world.run_job(manifest)
        before = [pod["metadata"]["uid"] for pod in await world.pods()]
        await world.patch_job("lc", {"spec": {"tasks": "many"}})
        await world.settle()
        if crash:
            await world.crash()
            await world.start()
            await world.settle()
        state = (await world.status("lc"))["state"]
        assert (state["phase"], state["reason"]) == ("Running", "Malformed")
        await world.patch_job("lc", {"spec": {"tasks": manifest["spec"]["tasks"]}})
        await world.settle()
        assert [pod["metadata"]["uid"] for pod in await world.pods()] == before
        status = await world.status("lc")
        assert (status["state"]["phase"], status.get("retryCount", 0)) == ("Running", 0)

    simulated(story)


def test_a_template_of_an_impossible_shape_is_told_and_the_job_can_be_terminated() -> None:
    async def story(world: Simulation) -> None:
        broken = job()
        broken["spec"]["tasks"][0]["template"]["spec"]["containers"] = {"name": "main"}
        await world.create_job(broken)
        await world.settle()
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "Malformed"
        assert "containers must be a list of objects" in state["message"]
        await world.command("lc", "TerminateJob")
        await world.settle()
        assert await world.phase("lc") == "Terminated"

    simulated(story)


@pytest.mark.timeout(120)
def test_p93_no_job_of_many_is_forgotten() -> None:
    async def story(world: Simulation) -> None:
        names = [f"lc-{number}" for number in range(1000)]
        for name in names:
            await world.create_job(job(name))
        await world.settle()
        await world.run_all()
        await world.end_running()
        await world.settle()
        assert {await world.phase(name) for name in names} == {"Completed"}

    simulated(story)


def test_p94_a_claim_is_made_once_though_something_after_it_fails() -> None:
    async def refuse_services(kind: Kind, obj: Object) -> None:
        if kind == SERVICE:
            raise Forbidden("services are forbidden: no rights")

    async def story(world: Simulation) -> None:
        assert isinstance(world.cluster, Faulty)
        world.cluster.before_create.append(refuse_services)
        volume = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
        await world.create_job(job(volumes=[volume]))
        await world.settle()
        await world.advance(600)
        assert "no rights" in (await world.status("lc"))["state"]["message"]
        assert await world.pod_names() == []
        world.cluster.before_create.clear()
        await world.advance(120)
        await world.run_all()
        assert await world.phase("lc") == "Running"
        assert len((await world.store.list(PERSISTENT_VOLUME_CLAIM)).items) == 1

    simulated(story, wrap=Faulty)


def test_p97_nothing_is_written_when_nothing_has_changed() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        label = {"metadata": {"labels": {"unrelated": "yes"}}}
        await world.store.patch(POD, "default", "lc-worker-0", label)
        await world.advance(5)  # its queue counts it at most once a second
        before = world.store.version
        await world.advance(3600)
        assert world.store.version == before

    simulated(story)


def test_p97_a_controller_that_starts_anew_writes_nothing_either() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        await world.advance(5)
        before = world.store.version
        await world.crash()
        await world.start()
        await world.settle()
        assert world.store.version == before

    simulated(story)


@pytest.mark.parametrize("kind", [CONFIG_MAP, SERVICE])
def test_objects_that_somebody_deletes_or_changes_are_put_right(kind: Kind) -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(job())
        name = "lc-svc" if kind == CONFIG_MAP else "lc"
        right = await world.store.get(kind, "default", name)
        changed: Object = {"data": {"worker.host": "nobody"}, "spec": {"selector": {"a": "b"}}}
        await world.store.patch(kind, "default", name, changed)
        await world.settle()
        for field in ("data", "spec"):
            now = (await world.store.get(kind, "default", name)).get(field)
            assert _covers(now, right.get(field))
        await world.store.delete(kind, "default", name)
        await world.settle()
        assert await world.exists(kind, name)
        assert await world.phase("lc") == "Running"

    simulated(story)


def _covers(now: Any, right: Any) -> bool:
    if isinstance(right, dict):
        return all(_covers(now.get(key), value) for key, value in right.items())
    return bool(right is None or now == right)


def test_an_object_of_somebody_else_is_left_alone_and_the_job_goes_on_when_it_goes() -> None:
    async def story(world: Simulation) -> None:
        theirs = {"metadata": {"name": "lc-svc"}, "data": {"keep": "me"}}
        await world.store.create(CONFIG_MAP, theirs)
        await world.create_job(job())
        await world.settle()
        await world.admit()
        await world.advance(600)
        state = (await world.status("lc"))["state"]
        assert state["reason"] == "NameTaken"
        assert "ConfigMap lc-svc" in state["message"]
        assert await world.pod_names() == []
        there = await world.store.get(CONFIG_MAP, "default", "lc-svc")
        assert there["data"] == {"keep": "me"}
        await world.store.delete(CONFIG_MAP, "default", "lc-svc")
        await world.advance(120)
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


def test_a_pod_of_somebody_else_is_left_alone_too() -> None:
    async def story(world: Simulation) -> None:
        container = {"name": "main", "image": "none"}
        theirs = {"metadata": {"name": "lc-worker-1"}, "spec": {"containers": [container]}}
        created = await world.store.create(POD, theirs)
        await world.create_job(job())
        await world.settle()
        await world.admit()
        await world.advance(600)
        there = await world.store.get(POD, "default", "lc-worker-1")
        assert there["metadata"]["uid"] == created["metadata"]["uid"]
        assert "pod lc-worker-1" in (await world.status("lc"))["state"]["message"].lower()
        await world.delete_pod("lc-worker-1")
        await world.advance(120)
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


async def _is_told(world: Simulation, reason: str, *words: str) -> None:
    """Status and one Event name the cause and the cure; the Job has no pods of its own yet."""
    state = (await world.status("lc"))["state"]
    assert state["reason"] == reason
    told = [e for e in await world.events() if e["reason"] == reason and e["type"] == "Warning"]
    assert len(told) == 1
    for word in words:
        assert word in state["message"]
        assert word in told[0]["message"]


async def _other_job_runs(world: Simulation) -> None:
    await world.create_job({**job(), "metadata": {"name": "other"}})
    await world.settle()
    await world.run_all()
    assert await world.phase("other") == "Running"


def test_a_queue_that_does_not_exist_is_named_and_waited_for() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job(queue="later"))
        await world.advance(100)
        await _is_told(world, "QueueNotFound", '"later"', "create it")
        await _other_job_runs(world)
        await world.store.create(QUEUE, {"metadata": {"name": "later"}, "spec": {"weight": 1}})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize(
    ("plugins", "words"),
    [
        ({"no-such": []}, ("no-such", "known here: env", "install its package")),
        ({"svc": ["--inject-hosts-env=perhaps"]}, ("inject-hosts-env", "true or false")),
    ],
)
def test_a_plugin_that_cannot_work_is_named_until_the_job_is_put_right(
    plugins: Object, words: tuple[str, ...]
) -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job(plugins=plugins))
        await world.settle()
        await world.admit()
        await world.advance(100)
        await _is_told(world, "PluginError", *words)
        assert await world.pod_names() == []
        await _other_job_runs(world)
        right = dict.fromkeys(plugins) | {"svc": []}
        await world.patch_job("lc", {"spec": {"plugins": right}})
        await world.settle()
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (CONFIG_MAP, "lc-svc"),
        (SERVICE, "lc"),
        (NETWORK_POLICY, "lc"),
        (SECRET, "lc-ssh"),
        (POD, "lc-worker-1"),
        (PERSISTENT_VOLUME_CLAIM, "lc-data"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
@pytest.mark.parametrize(
    ("options", "within"), [({"of_others": True}, 0), ({}, 60)], ids=["all are seen", "ours only"]
)
def test_a_name_that_is_taken_is_told_and_waited_for_and_disturbs_no_other_job(
    kind: Kind, name: str, options: Object, within: float
) -> None:
    async def story(world: Simulation) -> None:
        spec = {"containers": [{"name": "main", "image": "none"}]} if kind == POD else {}
        theirs = await world.store.create(kind, {"metadata": {"name": name}, "spec": spec})
        claim = {"accessModes": ["ReadWriteOnce"]}
        volume = {"mountPath": "/data", "volumeClaimName": "lc-data", "volumeClaim": claim}
        await world.create_job(job(plugins={"svc": [], "ssh": []}, volumes=[volume]))
        await world.settle()
        await world.admit()
        await world.advance(100)
        await _is_told(world, "NameTaken", f"{kind} {name}", "delete or rename it")
        assert await world.store.get(kind, "default", name) == theirs
        await _other_job_runs(world)
        await world.store.delete(kind, "default", name, grace_period_seconds=0)
        await world.advance(within)
        await world.run_all()
        assert await world.phase("lc") == "Running"

    simulated(story, controller_options=options)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(CONFIG_MAP, "lc-svc"), (SERVICE, "lc"), (NETWORK_POLICY, "lc"), (SECRET, "lc-ssh")],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_name_that_somebody_takes_from_a_job_that_runs_keeps_nothing_from_running(
    kind: Kind, name: str
) -> None:
    """What is missing is made once the name is free, and before the pods of another attempt."""

    async def story(world: Simulation) -> None:
        evicted = [{"event": "PodEvicted", "action": "RestartJob"}]
        await world.run_job(job(plugins={"svc": [], "ssh": []}, policies=evicted))
        await world.store.delete(kind, "default", name)
        theirs = await world.store.create(kind, {"metadata": {"name": name}})
        await world.settle()
        state = (await world.status("lc"))["state"]
        assert (state["phase"], state["reason"]) == ("Running", "NameTaken")
        assert await world.pod_names() == ["lc-worker-0", "lc-worker-1"]
        await world.delete_pod("lc-worker-0")
        await world.settle()
        assert await world.pod_names() == []
        assert await world.store.get(kind, "default", name) == theirs
        await world.store.delete(kind, "default", name)
        await world.settle()
        await world.run_all()
        status = await world.status("lc")
        assert (status["state"]["phase"], status["retryCount"]) == ("Running", 1)

    simulated(story, controller_options={"of_others": True})


def elastic(**spec: Any) -> Object:
    """2 of 6 workers are needed; the rest may come later."""
    manifest = job(minAvailable=2, **spec)
    manifest["spec"]["tasks"][0].update(replicas=6, minAvailable=2)
    manifest["metadata"]["annotations"] = {MINIMUM_FIRST: "true"}
    return manifest


FIRST = ["lc-worker-0", "lc-worker-1"]
ALL = [f"lc-worker-{index}" for index in range(6)]


@pytest.mark.parametrize("crash", [False, True])
def test_p98_pods_beyond_the_minimum_are_made_once_it_runs(crash: bool) -> None:
    async def story(world: Simulation) -> None:
        async def settle() -> None:
            await world.settle()
            if crash:
                await world.crash()
                await world.start()
                await world.settle()

        await world.create_job(elastic())
        await settle()
        await world.admit()
        await settle()
        assert await world.pod_names() == FIRST
        hosts = (await world.store.get(CONFIG_MAP, "default", "lc-svc"))["data"]["worker.host"]
        assert len(hosts.splitlines()) == 6
        await world.run_pod(FIRST[0])
        await settle()
        assert await world.pod_names() == FIRST
        status = await world.status("lc")
        assert status["state"]["phase"] == "Pending"
        assert status["state"]["message"].endswith(
            ": 4 of task worker; 1 of 6 pods has started, 2 are needed; pod lc-worker-1 is Pending "
            "(its Events may say more)"
        )
        await world.run_pod(FIRST[1])
        await settle()
        assert await world.pod_names() == ALL
        assert await world.phase("lc") == "Running"
        message = (await world.status("lc"))["state"]["message"]
        assert message == (
            "waiting for pods to run: 2 of 6 pods have started; pod lc-worker-2 is Pending "
            "(its Events may say more)"
        )
        await world.run_pending()
        await settle()
        assert "message" not in (await world.status("lc"))["state"]

    simulated(story)


def test_p98_a_new_attempt_begins_with_the_minimum_too() -> None:
    async def story(world: Simulation) -> None:
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        await world.run_job(elastic(policies=policies))
        await world.run_all()
        await world.end_pod(ALL[5], exit_code=1)
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.pod_names() == FIRST
        await world.run_all()
        assert await world.pod_names() == ALL

    simulated(story)


def test_p98_what_a_scale_up_adds_waits_while_one_of_the_minimum_is_replaced() -> None:
    async def story(world: Simulation) -> None:
        await world.run_job(elastic(policies=[{"event": "PodEvicted", "action": "RestartPod"}]))
        await world.run_all()
        await world.preempt_pod(FIRST[0])
        await world.settle()
        tasks = [{**(await world.job("lc"))["spec"]["tasks"][0], "replicas": 8}]
        await world.patch_job("lc", {"spec": {"tasks": tasks}})
        await world.settle()
        assert await world.pod_names() == ALL
        await world.run_all()
        assert await world.pod_names() == [*ALL, "lc-worker-6", "lc-worker-7"]

    simulated(story)


def test_p98_a_task_that_waits_for_its_turn_has_a_minimum_when_it_comes() -> None:
    async def story(world: Simulation) -> None:
        manifest = elastic()
        worker = manifest["spec"]["tasks"][0]
        late = {**worker, "name": "late", "dependsOn": {"name": ["worker"]}}
        late.update(replicas=3, minAvailable=1)
        manifest["spec"].update(tasks=[worker, late], minAvailable=3)
        await world.create_job(manifest)
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.pod_names() == FIRST
        await world.run_pending()
        await world.settle()  # the minimum has grown by the next task's
        assert await world.pod_names() == ["lc-late-0", *FIRST]
        await world.run_pending()
        await world.settle()
        assert await world.pod_names() == ["lc-late-0", "lc-late-1", "lc-late-2", *ALL]

    simulated(story)


def test_p98_without_the_annotation_all_pods_are_made_at_once() -> None:
    async def story(world: Simulation) -> None:
        manifest = elastic()
        del manifest["metadata"]["annotations"]
        await world.create_job(manifest)
        await world.settle()
        await world.admit()
        await world.settle()
        assert await world.pod_names() == ALL

    simulated(story)
