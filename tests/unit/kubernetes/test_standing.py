"""What an operator says of itself."""

import asyncio

import pytest
from simulation import ManualClock

from vcjob.api.kinds import LEASE, QUEUE
from vcjob.controller.cluster import EventType
from vcjob.controller.controller import Controller
from vcjob.controller.leading import Leader
from vcjob.kubernetes.controllers import Controllers
from vcjob.kubernetes.standing import cache_trouble, doing, lease_trouble, queue_trouble
from vcjob.local.store import Store
from vcjob.plugins.registry import installed_plugins

NO_PODS = "cannot list pods: no"


def new_controller() -> Controller:
    return Controller(Store(lambda: 1_800_000_000.0), installed_plugins(third_party=False))


def new_controllers(*namespaces: str) -> Controllers:
    return Controllers({name: new_controller() for name in namespaces or ("",)})


@pytest.mark.parametrize(
    ("troubles", "said"),
    [
        ([], "Jobs and pods are being read; nothing is decided before"),
        ([NO_PODS], NO_PODS),
        ([NO_PODS, "no"], f"{NO_PODS}; another kind cannot be followed either"),
        ([NO_PODS, "no", "no"], f"{NO_PODS}; 2 other kinds cannot be followed either"),
    ],
)
def test_what_cannot_be_followed_is_one_sentence(
    troubles: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Controller, "troubles", dict(enumerate(troubles)))
    assert cache_trouble(new_controllers(), None) == said
    of_each = f"namespace a: {said}; namespace b: {said}"
    assert cache_trouble(new_controllers("a", "b"), None) == of_each


def test_who_decides_nothing_lacks_nothing() -> None:
    assert cache_trouble(None, None) == ""


def test_a_default_queue_that_is_missing_is_told_with_the_cure() -> None:
    controllers = new_controllers()
    assert "vcjob manifests --only queues" in queue_trouble(controllers, "")
    assert queue_trouble(controllers, "no").endswith("(the operator cannot make it: no)")
    queue = {"metadata": {"name": "default", "uid": "u", "resourceVersion": "1"}}
    for _, controller in controllers:
        controller.records.take(QUEUE, EventType.ADDED, queue)
    assert queue_trouble(controllers, "no") == ""


def test_each_replica_says_what_it_does() -> None:
    assert doing(False, "", None) == "stands by; nobody leads"
    assert doing(False, "other", None) == "stands by; other leads"
    assert doing(True, "me", None) == "leads, and decides nothing now"
    assert doing(True, "me", new_controllers()) == "leads"


@pytest.mark.parametrize(
    ("trouble", "cure"),
    [("", ""), ("no answer", ""), ('namespaces "own" not found', "kubectl create namespace own")],
)
def test_a_namespace_of_the_lease_that_is_missing_is_told_with_the_cure(
    trouble: str, cure: str
) -> None:
    leader = Leader(Store(lambda: 1_800_000_000.0), "own", "vcjob-operator", "me")
    leader.trouble = trouble
    said = lease_trouble(leader, "own")
    assert said.startswith(trouble)
    assert cure in said if cure else said == trouble


def test_a_holder_who_does_not_renew_a_lease_that_lasts_for_long_is_told_with_the_cure() -> None:
    async def story() -> None:
        clock = ManualClock()
        store = Store(clock.now)
        renewed = "2026-01-01T00:00:00.000000Z"
        spec = {"holderIdentity": "x", "leaseDurationSeconds": 86400 * 9, "renewTime": renewed}
        metadata = {"namespace": "own", "name": "vcjob-operator"}
        await store.create(LEASE, {"metadata": metadata, "spec": spec})
        leader = Leader(store, "own", "vcjob-operator", "me", clock)
        leading = asyncio.create_task(leader.lead(asyncio.Event().wait))  # type: ignore[arg-type]
        said = []
        for seconds in (0, 59, 2, 3600):
            clock.move_to(clock.now() + seconds)
            for _ in range(20):
                await asyncio.sleep(0)
            said.append(lease_trouble(leader, "own"))
        assert said[:2] == ["", ""]
        assert said[2] == said[3], "what stays is logged once"
        assert (
            f"x holds the Lease own/vcjob-operator for 9d, but last renewed it at {renewed}"
            in said[2]
        )
        await store.patch(LEASE, "own", "vcjob-operator", {"spec": {"holderIdentity": ""}})
        clock.move_to(clock.now() + 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert leader.leads
        assert lease_trouble(leader, "own") == ""
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)

    asyncio.run(asyncio.wait_for(story(), 20))
