"""What users of such systems ran into: ranks, TF_CONFIG and Ray. Each test names its case."""

import asyncio
import json
from typing import Any

import pytest
from reviews import respond, review
from simulation import Simulation, simulated

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.controller.key_pairs import make_key_pair
from vcjob.core.blueprint import Blueprint
from vcjob.core.check import check
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)
KEYS = [asyncio.run(make_key_pair("ed25519")) for _ in range(2)]


def job(plugins: Object, pod: Object | None = None, **tasks: int) -> Object:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    listed = [
        {"name": name, "replicas": replicas, "template": {"spec": {**spec, **(pod or {})}}}
        for name, replicas in tasks.items()
    ]
    manifest = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"plugins": plugins, "tasks": listed},
    }
    return apply_defaults(manifest, requires=REGISTRY.requires)


def environment(manifest: Object, task: str, index: int = 0) -> dict[str, str]:
    pod = Blueprint(Job.of(manifest), REGISTRY).pod(task, index)
    entries = pod["spec"]["containers"][0].get("env", [])
    return {entry["name"]: entry.get("value", "") for entry in entries}


def warnings(manifest: Object) -> list[Problem]:
    found = check(manifest)
    assert all(problem.warning for problem in found), found
    return found


def test_p38_a_service_task_beside_master_and_worker_is_not_counted() -> None:
    manifest = job({"pytorch": []}, tensorboard=2, master=1, worker=3)
    seen = [
        environment(manifest, "master"),
        *(environment(manifest, "worker", i) for i in range(3)),
    ]
    assert [one["RANK"] for one in seen] == ["0", "1", "2", "3"]
    assert {one["WORLD_SIZE"] for one in seen} == {"4"}
    assert "RANK" not in environment(manifest, "tensorboard", 1)
    assert warnings(manifest) == []


@pytest.mark.parametrize("containers", [1, 3])
def test_p39_the_rank_is_the_index_in_every_container(containers: int) -> None:
    listed = [{"name": f"c{number}", "image": "none"} for number in range(containers)]
    plugins: Object = {"env": [], "pytorch": [], "hcclrank": []}
    manifest = job(plugins, {"containers": listed}, master=1, worker=4)
    blueprint = Blueprint(Job.of(manifest), REGISTRY)
    for index in range(4):
        pod = blueprint.pod("worker", index)
        assert pod["metadata"]["annotations"]["hccl/rankIndex"] == str(index + 1)
        for container in pod["spec"]["containers"]:
            env = {entry["name"]: entry.get("value") for entry in container["env"]}
            assert (env["VC_TASK_INDEX"], env["RANK"]) == (str(index), str(index + 1))


def test_p40_an_evaluator_is_one_and_knows_that_it_is() -> None:
    manifest = job({"tensorflow": []}, chief=1, worker=2, evaluator=1)
    config = json.loads(environment(manifest, "evaluator")["TF_CONFIG"])
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert config["cluster"]["worker"] == ["j-worker-0.j:2222", "j-worker-1.j:2222"]
    assert warnings(manifest) == []
    [problem] = warnings(job({"tensorflow": []}, chief=1, worker=2, evaluator=2))
    assert "TensorFlow takes at most one evaluator" in problem.message


def test_p46_the_command_that_ray_replaces_is_told_where_it_stands() -> None:
    containers = [{"name": "head", "image": "ray", "command": ["python"], "args": ["train.py"]}]
    found = warnings(job({"ray": []}, {"containers": containers}, head=1))
    path = ("spec", "tasks", 0, "template", "spec", "containers", 0)
    assert {problem.path: problem.message for problem in found} == {
        (*path, "command"): 'the plugin ray replaces the command of container "head"',
        (*path, "args"): (
            'the plugin ray starts Ray in place of the arguments of container "head"'
        ),
    }


def test_a_tf_config_that_linux_would_not_pass_is_left_out_with_an_event() -> None:
    async def story(world: Simulation) -> None:
        await world.create_job(job({"tensorflow": []}, worker=9000))
        await world.settle()
        await world.patch_job("j", {"metadata": {"labels": {"changed": "yes"}}})
        await world.settle()
        told = [event for event in await world.events() if event["reason"] == "PluginWarning"]
        [event] = [event for event in told if "TF_CONFIG" in event["message"]]
        assert (event["type"], event["count"]) == ("Warning", 1)
        assert event["involvedObject"]["name"] == "j"
        assert "containers do not get TF_CONFIG: it would have about" in event["message"]
        # The host list is too long for the environment too; the files hold it.
        assert any("VC_WORKER_HOSTS" in event["message"] for event in told)

    simulated(story)


def test_a_job_that_has_ended_is_not_warned_of_again() -> None:
    async def story(world: Simulation) -> None:
        manifest = job({"tensorflow": []}, other=1, more=1)
        await world.run_job(manifest)
        await world.end_running()
        await world.settle()
        assert await world.phase("j") == "Completed"
        await world.crash()
        await world.start()
        await world.settle()
        [event] = [one for one in await world.events() if one["reason"] == "PluginWarning"]
        assert "no task plays a role of TensorFlow" in event["message"]
        assert event["count"] == 1

    simulated(story)


def declaring(*ports: Any, beside: Any = ()) -> Object:
    main = {"name": "head", "image": "none", "ports": list(ports)}
    return {"containers": [main, {"name": "side", "image": "none", "ports": list(beside)}]}


@pytest.mark.parametrize(
    ("manifest", "messages"),
    [
        (job({"ray": []}, declaring({"name": "gcs", "containerPort": 6379}), head=1), []),
        (
            job({"ray": []}, declaring({"name": "redis", "containerPort": 6379}), head=1),
            ['the Service looks for port 6379 under the name "gcs"'],
        ),
        (
            job({"ray": []}, declaring({"name": "gcs", "containerPort": 1}), head=1),
            ['the name "gcs" is needed for port 6379'],
        ),
        (
            job({"ray": []}, declaring(beside=[{"containerPort": 8265}]), head=1),
            ['container "side" declares port 8265, at which container "head" serves'],
        ),
        (
            job(
                {"ray": []}, declaring(beside=[{"containerPort": 8265, "protocol": "UDP"}]), head=1
            ),
            [],
        ),
        (
            job(
                {"pytorch": []},
                declaring({"name": "pytorchjob-port", "containerPort": 1}),
                master=1,
            ),
            ['the name "pytorchjob-port" is needed for port 23456'],
        ),
        (job({"pytorch": []}, declaring({"name": "x", "containerPort": 23456}), master=1), []),
        (job({"ray": []}, declaring(), head=3), ["has 3 replicas; each is a head of its own"]),
        (job({"ray": []}, declaring(), head=0), ["has no replicas, so that workers have no head"]),
        (
            job({"ray": ["--worker=head"]}, declaring(), head=1),
            ['--head and --worker name the same task "head"', 'no container "worker"'],
        ),
        (job({"pytorch": []}, master=0, worker=1), ["no replicas, so that there is no master"]),
        (job({"hcclrank": []}, a=1), ['no task plays a role (tasks called "master", "worker")']),
        (job({"hcclrank": [], "pytorch": ["--master=a"]}, a=1), []),
        (
            job(
                {"hcclrank": []},
                {
                    "containers": [
                        {"name": "c", "image": "i", "env": [{"name": "RANK", "value": "1"}]}
                    ]
                },
                a=1,
            ),
            [],
        ),
        (job({"tensorflow": []}, chief=2, worker=1), ["TensorFlow takes at most one chief"]),
    ],
)
def test_traps_are_told_and_refuse_nothing(manifest: Object, messages: list[str]) -> None:
    found = warnings(manifest)
    assert len(found) == len(messages), found
    for problem, message in zip(found, messages, strict=True):
        assert message in problem.message


RAY = {"containers": [{"name": "head", "image": "i", "command": ["python"]}]}
OTHERS_KEY = ["--ssh-private-key=x", "--ssh-public-key=ssh-rsa y"]
OWN_PORT = ["--port=22"]


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (job({"tensorflow": ["--ps=boss"]}, worker=2), '--ps names "boss"'),
        (job({"tensorflow": []}, ps=1, workers=2), 'task "workers" plays no role'),
        (job({"tensorflow": []}, worker=6000), "containers do not get TF_CONFIG"),
        (job({"pytorch": []}, worker=2), "there is no master"),
        (job({"pytorch": []}, master=2), "each has the rank 0"),
        (job({"pytorch": OWN_PORT, "ssh": []}, master=1), "only one program can listen at a port"),
        (job({"mpi": []}, master=1), "there is no worker"),
        (job({"mpi": []}, master=1, worker=9000), "the master does not get MPI_HOST"),
        (job({"ray": []}, RAY, head=1), "replaces the command"),
        (job({"ray": ["--headContainer=x"]}, RAY, head=1), 'no container "x"'),
        (job({"ssh": OTHERS_KEY, "svc": []}, worker=1), "there is a private key in the manifest"),
    ],
)
def test_admission_tells_a_trap_and_admits(manifest: Object, says: str) -> None:
    """A Job that seldom does what is meant; whoever sends it to a cluster reads why."""
    response = respond("/jobs/validate", review(manifest))
    assert response["allowed"], response
    assert [one for one in response["warnings"] if says in one], response["warnings"]


TWO_KEYS = [f"--ssh-private-key={KEYS[0].private}", f"--ssh-public-key={KEYS[1].public}"]


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (job({"ray": []}, worker=1), "there is no head"),
        (job({"mpi": []}, worker=1), "there is no master"),
        (job({"ray": ["--port=8265"]}, RAY, head=1), "--port and --dashboardPort are both 8265"),
        (job({"tensorflow": ["--port=65536"]}, worker=2), "--port=65536 is no port"),
        (job({"ssh": TWO_KEYS, "svc": []}, worker=1), "does not belong to --ssh-private-key"),
    ],
)
def test_admission_refuses_what_cannot_work(manifest: Object, says: str) -> None:
    response = respond("/jobs/validate", review(manifest))
    assert not response["allowed"]
    assert says in response["status"]["message"]
