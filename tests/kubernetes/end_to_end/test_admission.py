"""What is let in and what is not, as recorded from genuine Volcano; and why, in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from end_to_end.operating import Verdict, Webhook
from end_to_end.target import Target
from end_to_end.world import World

from vcjob.api.kinds import JOB
from vcjob.controller.cluster import Forbidden, Invalid

RECORDINGS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parents[2] / "reference" / "admission").glob("*.json"))
}
REFUSED_BY_VCJOB = {"039-svc-bad-args-allowed"}  # docs/compatibility.md row 3
QUEUES = {"closed-q", "parent-q", "child-q"}
"""Queues of the recordings that clusters do not have: tests/reference/ plays those."""
NAMES = [
    name
    for name, one in RECORDINGS.items()
    if not any(f'"{queue}"' in json.dumps(one["jobs"]) for queue in QUEUES)
]


def change_of(old: Any, new: Any) -> Any:
    """The merge patch that makes one object of another."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    return gone | {key: change_of(old.get(key), item) for key, item in new.items()}


def expected(name: str, target: Target) -> bool:
    refused = target.controller == "vcjob" and name in REFUSED_BY_VCJOB
    return bool(RECORDINGS[name]["allowed"]) and not refused


def save(target: Target, name: str, verdict: Verdict) -> None:
    """Record a verdict with the spec that is kept."""
    kept = (verdict.object or {}).get("spec")
    target.save(f"admission-{name}", {"refused": verdict.reason, "spec": kept})


@pytest.mark.parametrize("name", NAMES)
def test_the_webhook_answers_as_recorded(
    name: str, target: Target, webhook: Webhook | None
) -> None:
    if webhook is None:
        pytest.skip("the webhook is installed: the next test asks it")
    recording = RECORDINGS[name]
    first, last = recording["jobs"][0], recording["jobs"][-1]
    if recording["operation"] == "CREATE":
        verdict = webhook.admit(first)
    else:
        verdict = webhook.change(first, last)
    save(target, name, verdict)
    assert (verdict.object is not None) == expected(name, target), verdict
    assert bool(verdict.reason) == (verdict.object is None)


def test_the_api_server_answers_as_recorded(
    target: Target, webhook: Webhook | None, pytestconfig: pytest.Config
) -> None:
    if webhook is not None and pytestconfig.getoption("kubeconfig"):
        pytest.skip("no webhook is installed: the server knows the schema only")

    async def sent(world: World, name: str) -> Verdict:
        first, last = RECORDINGS[name]["jobs"][0], RECORDINGS[name]["jobs"][-1]
        try:
            if RECORDINGS[name]["operation"] == "CREATE":
                return Verdict(await world.try_job(first))
            change = {"spec": change_of(first["spec"], last["spec"])}
            called = (await world.create(JOB, first))["metadata"]["name"]
            try:
                return Verdict(await world.patch_job(called, change))
            finally:
                await world.delete(JOB, world.namespace, called)
                await world.until(lambda: not world.find(JOB, called))
        except (Invalid, Forbidden) as error:
            return Verdict(reason=str(error))

    async def story(world: World) -> dict[str, Verdict]:
        return {name: await sent(world, name) for name in NAMES}

    verdicts = target.play(story)
    for name, verdict in verdicts.items():
        save(target, name, verdict)
    wrong = {
        name: verdict
        for name, verdict in verdicts.items()
        if (verdict.object is not None) != expected(name, target)
    }
    assert not wrong
