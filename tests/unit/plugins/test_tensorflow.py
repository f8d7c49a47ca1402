import json
from typing import Any

import pytest

from vcjob.api.types import Job
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def blueprint(*tokens: str, pod: Any = None, **tasks: int) -> Blueprint:
    template = {"spec": {"containers": [{"name": "c"}], "initContainers": [{}], **(pod or {})}}
    listed = [{"name": n, "replicas": r, "template": template} for n, r in tasks.items()]
    plugins = {"svc": ["--inject-hosts-env=false"], "tensorflow": list(tokens)}
    job = {"metadata": {"name": "t"}, "spec": {"tasks": listed, "plugins": plugins}}
    return Blueprint(Job.of(job), REGISTRY)


def tf_config(made: Blueprint, task: str, index: int = 0) -> Any:
    spec = made.pod(task, index)["spec"]
    assert "env" not in spec["initContainers"][0]
    found = [one["value"] for one in spec["containers"][0].get("env", [])]
    assert len(found) <= 1
    return json.loads(found[0]) if found else None


def test_tf_config_is_compact_and_in_tensorflows_order() -> None:
    made = blueprint(other=1, worker=2, ps=1)
    [entry] = made.pod("worker", 1)["spec"]["containers"][0]["env"]
    assert entry == {
        "name": "TF_CONFIG",
        "value": '{"cluster":{"ps":["t-ps-0.t:2222"],"worker":["t-worker-0.t:2222",'
        '"t-worker-1.t:2222"]},"task":{"type":"worker","index":1}}',
    }


def test_roles_are_played_by_the_tasks_that_the_arguments_name() -> None:
    made = blueprint("--ps=boss", "--port=1", boss=1, eval=1, evaluator=1)
    assert tf_config(made, "boss")["task"] == {"type": "ps", "index": 0}
    assert tf_config(made, "eval")["task"] == {"type": "eval", "index": 0}
    assert tf_config(made, "evaluator")["cluster"] == {
        "ps": ["t-boss-0.t:1"],
        "evaluator": ["t-evaluator-0.t:1"],
    }


def test_a_fixed_host_name_stands_once_for_each_replica() -> None:
    made = blueprint(pod={"hostname": "h"}, worker=2)
    assert tf_config(made, "worker")["cluster"] == {"worker": ["h.t:2222", "h.t:2222"]}


def test_a_single_pod_needs_no_cluster() -> None:
    assert tf_config(blueprint(worker=1), "worker") is None
    assert tf_config(blueprint(worker=1, ps=0), "worker") is not None


@pytest.mark.parametrize(
    ("made", "message", "warning"),
    [
        (blueprint("--port=0", worker=2), "--port=0 is no port", False),
        (blueprint("--port=65536", worker=2), "--port=65536 is no port", False),
        (blueprint("--ps=bos", worker=2), '--ps names "bos"', True),
        (blueprint("--ps=worker", worker=2), "name the same task", True),
        (blueprint(a=2), "no task plays a role", True),
        (blueprint(worker=6000), "containers do not get TF_CONFIG", True),
    ],
)
def test_what_cannot_work_is_told(made: Blueprint, message: str, warning: bool) -> None:
    [problem] = [one for one in made.problems if message in one.message]
    assert problem.warning == warning
    assert problem.path[:3] == ("spec", "plugins", "tensorflow")


def test_a_config_that_linux_would_not_pass_is_left_out() -> None:
    assert tf_config(blueprint(worker=3000), "worker") is not None
    assert tf_config(blueprint(worker=6000), "worker") is None
