import asyncio
from typing import Any

import pytest
from served import JOBS, PODS, Answer, job, pod, served

A, B = {"name": "A", "value": "1"}, {"name": "A", "value": "2"}
PORT = {"containerPort": 80, "protocol": "TCP"}


def created(path: str, obj: dict[str, Any]) -> Answer:
    async def run() -> Answer:
        async with served() as ask:
            return await ask("POST", path, obj)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("of_pod", "of_container"),
    [
        ({}, {"env": [A, B]}),
        ({}, {"ports": [PORT, PORT]}),
        ({"imagePullSecrets": [{"name": "s"}, {"name": "s"}]}, {}),
        ({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}] * 2}, {}),
    ],
)
def test_pods_may_name_twice_what_kubernetes_takes_twice(
    of_pod: dict[str, Any], of_container: dict[str, Any]
) -> None:
    obj = pod("p")
    obj["spec"].update(of_pod)
    obj["spec"]["containers"][0].update(of_container)
    answer = created(PODS, obj)
    assert answer.code == 201, answer.body
    for field, items in of_container.items():
        assert answer.body["spec"]["containers"][0][field] == items
    for field, items in of_pod.items():
        assert answer.body["spec"][field] == items


def test_the_rest_of_such_a_pod_is_checked() -> None:
    obj = pod("p")
    obj["spec"]["containers"][0]["env"] = [A, B, {"name": "A", "valu": "3"}, {"value": "4"}]
    assert created(PODS, obj).code == 422
    obj["spec"]["containers"] *= 2
    assert "the same name" in created(PODS, obj).body["message"]


def test_a_job_may_not_as_its_definition_forbids_it() -> None:
    obj = job("j")
    obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [A, B]
    answer = created(JOBS, obj)
    assert answer.code == 422
    assert "env[1] has the same name A" in answer.body["message"]
