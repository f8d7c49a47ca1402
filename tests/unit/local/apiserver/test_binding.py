import asyncio
from typing import Any

import pytest
from served import PODS, pod, served

from vcjob.api.kinds import POD

TO_NODE = {"metadata": {"name": "p"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}}


def _bound(binding: Any, *, spec: Any = None, **asked: str) -> tuple[int, str, Any]:
    """Code and message of the answer to a Binding, and the pod as it is then."""

    async def run() -> tuple[int, str, Any]:
        async with served() as ask:
            created = pod("p")
            await ask.made(PODS, {**created, "spec": {**created["spec"], **(spec or {})}})
            other = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
            await ask.store.patch(POD, "default", "p", other, subresource="status")
            answer = await ask("POST", f"{PODS}/p/binding", binding, **asked)
            return answer.code, answer.body.get("message", ""), (await ask("GET", f"{PODS}/p")).body

    return asyncio.run(run())


def test_a_pod_gets_its_node_and_says_that_it_is_scheduled() -> None:
    code, _, bound = _bound(TO_NODE)
    assert code == 201
    assert bound["spec"]["nodeName"] == "n"
    [condition] = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


@pytest.mark.parametrize(
    ("binding", "spec", "code", "said"),
    [
        (TO_NODE, {"nodeName": "m"}, 409, 'pod p is already assigned to node "m"'),
        (TO_NODE, {"schedulingGates": [{"name": "g"}]}, 409, "has non-empty .spec.schedulingGates"),
        ({**TO_NODE, "metadata": {"name": "q"}}, {}, 400, "not that of"),
        ({"target": {"kind": "Pod", "name": "n"}}, {}, 422, "of kind Node"),
        ({"target": {}}, {}, 422, "of kind Node"),
        ({}, {}, 422, 'lacks the field "target"'),
        ({"target": "n"}, {}, 422, "target must be an object"),
        ({**TO_NODE, "metadata": 5}, {}, 422, "metadata must be an object"),
        ({**TO_NODE, "kind": "Eviction"}, {}, 400, "must be Binding, not Eviction"),
        ({**TO_NODE, "metadata": {"uid": "of-another"}}, {}, 409, "another object"),
    ],
)
def test_what_cannot_be_bound_is_refused_and_stays(
    binding: Any, spec: Any, code: int, said: str
) -> None:
    answered, message, left = _bound(binding, spec=spec)
    assert answered == code
    assert said in message
    assert left["spec"].get("nodeName") == spec.get("nodeName")
    assert [one["status"] for one in left["status"]["conditions"]] == ["False"]


def test_a_dry_run_binds_nothing() -> None:
    code, _, left = _bound(TO_NODE, dryRun="All")
    assert code == 201
    assert "nodeName" not in left["spec"]
