"""Plugins under ``vcjob operator``: those of packages, what they warn of, and keys that last."""

import base64
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_plugin import install_example
from operators import QUICK, Cluster, Operator, phase

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import EVENT, JOB, POD, SECRET
from vcjob.api.types import Object
from vcjob.plugins.registry import installed_plugins

AS_VOLCANO = "--scheduler=volcano"  # which the cluster of these tests plays
REQUIRES = installed_plugins(third_party=False).requires


@pytest.fixture
def with_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = (str(install_example(tmp_path)), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def job(plugins: Object, policies: Any = (), **tasks: int) -> Object:
    """A Job as it is after admission."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    listed = [
        {"name": name, "replicas": count, "template": {"spec": spec}}
        for name, count in tasks.items()
    ]
    manifest = {
        "metadata": {"name": "j", "namespace": "default"},
        # One pod is enough to begin with: what is looked at is known before all are there.
        "spec": {"plugins": plugins, "tasks": listed, "policies": policies, "minAvailable": 1},
    }
    return apply_defaults(manifest, requires=REQUIRES)


def running(obj: Object) -> bool:
    return phase(obj) == "Running"


def environment(pod: Object) -> dict[str, str]:
    env = pod["spec"]["containers"][0].get("env", [])
    return {entry["name"]: entry.get("value", "") for entry in env}


@pytest.mark.usefixtures("with_example")
def test_a_packages_plugin_works_only_where_it_is_allowed(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    first = start(AS_VOLCANO, *QUICK)
    there.create(JOB, job({"torchrun": [], "svc": []}, worker=2))

    def says_why(obj: Object) -> bool:
        state = (obj.get("status") or {}).get("state") or {}
        return "torchrun" in state.get("message", "")

    waiting = there.until(JOB, "j", says_why)
    message = waiting["status"]["state"]["message"]
    assert 'the plugin "torchrun" of the package vcjob-torchrun 1.0 is not used' in message
    assert "--third-party-plugins" in message
    assert there.made == []
    assert first.end() == 0
    start(AS_VOLCANO, *QUICK, "--third-party-plugins")
    there.until(JOB, "j", running)
    env = environment(there.get(POD, "j-worker-1"))
    assert (env["PET_NNODES"], env["PET_NODE_RANK"]) == ("2", "1")


@pytest.mark.parametrize(
    ("plugin", "tasks", "variable"),
    [
        ("tensorflow", {"ps": 1, "worker": 6000}, "TF_CONFIG"),
        ("mpi", {"master": 1, "worker": 9000}, "MPI_HOST"),
    ],
)
def test_a_variable_that_linux_would_not_pass_is_left_out_with_an_event(
    there: Cluster,
    start: Callable[..., Operator],
    plugin: str,
    tasks: dict[str, int],
    variable: str,
) -> None:
    start(AS_VOLCANO, "--api-rate=200", "--api-burst=1")
    there.create(JOB, job({plugin: [], "svc": ["--inject-hosts-env=false"]}, **tasks))
    first = f"j-{next(iter(tasks))}-0"
    made = there.until(POD, first, lambda _: True)
    assert variable not in environment(made)
    events = there.do(there.store.list(EVENT)).items
    [told] = [one for one in events if variable in one["message"]]
    assert (told["type"], told["reason"]) == ("Warning", "PluginWarning")
    assert "/etc/volcano" in told["message"]


def test_keys_outlive_restarts_of_the_job_and_of_the_operator(
    there: Cluster, start: Callable[..., Operator]
) -> None:
    first = start(AS_VOLCANO, *QUICK)
    restart = [{"event": "PodFailed", "action": "RestartJob"}]
    there.create(JOB, job({"mpi": []}, restart, master=1, worker=1))
    there.until(JOB, "j", running)
    there.until(POD, "j-worker-0", lambda pod: (pod.get("status") or {}).get("phase") == "Running")
    made = there.get(SECRET, "j-ssh")
    first.end(signal.SIGKILL)
    start(AS_VOLCANO, *QUICK)
    there.do(there.face.end_pod("j-worker-0", 1))
    restarted = there.until(
        JOB, "j", lambda obj: running(obj) and obj["status"].get("retryCount") == 1
    )
    assert there.get(SECRET, "j-ssh") == made
    master, worker = restarted["spec"]["tasks"]
    tasks = [master, {**worker, "replicas": 2}]
    there.do(there.store.patch(JOB, "default", "j", {"spec": {"tasks": tasks}}))
    scaled = there.until(SECRET, "j-ssh", lambda secret: secret["data"] != made["data"])
    assert {**scaled["data"], "config": ""} == {**made["data"], "config": ""}
    assert "Host j-worker-1\n" in base64.b64decode(scaled["data"]["config"]).decode()
