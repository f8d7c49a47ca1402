"""TorchX's Kubernetes scheduler on a real engine: submit, status, log and cancel."""

import json
import os
import subprocess
from pathlib import Path

import client_packages
import pytest

pytestmark = [pytest.mark.local, pytest.mark.clients]

# In the environment of TorchX, as its users write it; prints what came of each step as JSON.
PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from torchx.schedulers.kubernetes_scheduler import create_scheduler
from torchx.specs import AppDef, AppState, Resource, Role

SMALL = Resource(cpu=0.2, gpu=0, memMB=1100)
OPTIONS = {"queue": "default", "namespace": "default"}
scheduler = create_scheduler("test")

def role(name, script, replicas):
    return Role(name=name, image="unused", entrypoint="sh", args=["-c", script],
                env={"GREETING": "hello"}, num_replicas=replicas, resource=SMALL)

def submit(name, *roles):
    return scheduler.submit(AppDef(name, roles=list(roles)), OPTIONS)

def until(app, *states):
    while (status := scheduler.describe(app)).state not in states:
        time.sleep(0.1)
    return {one.role: [replica.state.name for replica in one.replicas]
            for one in status.roles_statuses}, status.state.name

told = {}
ends = submit("ends", role("trainer", "echo $GREETING from $VC_TRAINER_0_HOSTS", 2),
              role("reader", "echo read", 1))
told["ends"], told["state"] = until(ends, AppState.SUCCEEDED, AppState.FAILED)
told["log"] = list(scheduler.log_iter(ends, "trainer", 1))
told["tail"] = list(scheduler.log_iter(ends, "reader", 0, should_tail=True))

stays = submit("stays", role("trainer", "sleep 600", 1), role("reader", "sleep 600", 1))
told["stays"], _ = until(stays, AppState.RUNNING)
told["first"] = ends
told["listed"] = {one.app_id: one.state.name for one in scheduler.list()}
scheduler.cancel(stays)
while stays in {one.app_id for one in scheduler.list()}:
    time.sleep(0.1)
json.dump(told, sys.stdout)
"""


def test_an_app_of_two_roles(engine_kubeconfig: Path, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--clients"):
        pytest.skip("needs TorchX: pytest tests/kubernetes --clients")
    done = subprocess.run(
        [client_packages.torchx(), "-c", PROGRAM],
        env={**os.environ, "KUBECONFIG": str(engine_kubeconfig)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == "SUCCEEDED"
    assert told["ends"] == {"trainer": ["SUCCEEDED", "SUCCEEDED"], "reader": ["SUCCEEDED"]}
    name = told["first"].removeprefix("default:")
    [line] = filter(None, "".join(told["log"]).splitlines())
    assert line.endswith(f"Z hello from {name}-trainer-0-0.{name}")
    assert told["tail"][0].endswith("Z read")
    assert told["stays"] == {"trainer": ["RUNNING"], "reader": ["RUNNING"]}
    assert told["listed"].keys() >= {told["first"]}
    assert told["listed"][told["first"]] == "SUCCEEDED"
