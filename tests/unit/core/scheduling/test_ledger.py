"""The ledger's counts equal a recount, in whatever order news of pods come in."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.names import GROUP_NAME, TASK_SPEC
from vcjob.api.types import Object
from vcjob.core.scheduling.amounts import add
from vcjob.core.scheduling.booked import BookedGang
from vcjob.core.scheduling.ledger import Ledger

GATE, OTHER = "vcjob.dev/gang", "example.com/quota"
KEY = ("x", "lc")
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}

states = st.fixed_dictionaries(
    {
        "gates": st.sets(st.sampled_from((GATE, OTHER))),
        "node": st.sampled_from(("", "", "n")),
        "phase": st.sampled_from(("Pending", "Pending", "Running", "Succeeded", "Failed")),
        "leaving": st.booleans(),
        "refused": st.booleans(),
    }
)
pods = st.lists(
    st.tuples(st.sampled_from(("ps", "worker")), st.lists(states, min_size=1, max_size=3),
              st.booleans()), max_size=5)  # fmt: skip


def pod(uid: str, version: int, task: str, state: dict[str, Any]) -> Object:
    metadata: Object = {
        "name": uid, "namespace": "x", "uid": uid, "resourceVersion": str(version),
        "annotations": {GROUP_NAME: "lc", TASK_SPEC: task},
    }  # fmt: skip
    if state["leaving"]:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Object = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    if state["node"]:
        spec["nodeName"] = state["node"]
    else:
        spec["schedulingGates"] = [{"name": gate} for gate in sorted(state["gates"])]
    status: Object = {"phase": state["phase"]}
    if state["refused"]:
        status["conditions"] = [REFUSED]
    return {"metadata": metadata, "spec": spec, "status": status}


def group(least: int) -> Object:
    metadata = {"name": "lc", "namespace": "x", "uid": "g", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"minMember": least}, "status": {"phase": "Inqueue"}}


def counts(gang: BookedGang) -> dict[str, Any]:
    return {
        "of_task": +gang.of_task,
        "standing": +gang.standing,
        "let_go": +gang.let_go,
        "phases": +gang.phases,
        "refused": set(gang.refused),
        "unbound": set(gang.unbound),
    }


@given(pods, st.randoms(use_true_random=False))
def test_books_equal_a_recount(told: list[tuple[str, list[Any], bool]], order: Any) -> None:
    ledger, again = Ledger(GATE), Ledger(GATE)
    for books in (ledger, again):
        books.enter_group(group(2))
    for number, (task, course, gone) in enumerate(told):
        versions = [pod(f"p{number}", 10 * number + step, task, state)
                    for step, state in enumerate(course)]  # fmt: skip
        late = list(versions)
        order.shuffle(late)
        for one in (*late, versions[-1]):
            ledger.enter_pod(one)
        if gone:
            ledger.enter_pod(versions[-1], gone=True)
        else:
            again.enter_pod(versions[-1])
    assert counts(ledger.gangs[KEY]) == counts(again.gangs[KEY])


@given(
    st.lists(
        st.tuples(st.sampled_from(("a", "b")), st.sampled_from(("a", "b")),
                  st.sampled_from(("Pending", "Inqueue", "Running")), st.booleans(), states),
        max_size=20,
    )
)  # fmt: skip
def test_what_is_held_by_queue_equals_a_recount(
    news: list[tuple[str, str, str, bool, Any]],
) -> None:
    ledger = Ledger()
    for version, (queue, name, phase, of_group, state) in enumerate(news, start=1):
        if of_group:
            one = group(2)
            one["metadata"]["resourceVersion"] = str(version)
            one["spec"] |= {"queue": queue, "minResources": {"cpu": "2"}}
            one["status"]["phase"] = phase
            ledger.enter_group(one, gone=state["leaving"])
        else:
            ledger.enter_pod(pod(name, version, "worker", state), gone=state["refused"])
    recounted: dict[str, dict[str, Any]] = {}
    for gang in ledger.gangs.values():
        add(recounted.setdefault(gang.queue, {}), gang.holds())
    for queue in ("a", "b", "default"):
        held = ledger.held_by_queue().get(queue, {}).get("cpu", 0)
        assert held == recounted.get(queue, {}).get("cpu", 0)


@given(pods)
def test_what_counts_of_pods(told: list[tuple[str, list[Any], bool]]) -> None:
    ledger = Ledger(GATE)
    ledger.enter_group(group(2))
    standing: Counter[str] = Counter()
    let_go: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for number, (task, course, _) in enumerate(told):
        state = course[-1]
        ledger.enter_pod(pod(f"p{number}", number, task, state))
        if state["leaving"]:
            continue
        gates = set() if state["node"] else state["gates"]
        ended = state["phase"] in ("Succeeded", "Failed")
        there[task] += not gates - {GATE}
        standing[task] += bool(state["node"]) or ended
        let_go[task] += not (state["node"] or ended or gates)
    gang = ledger.gangs[KEY]
    assert (+gang.of_task, +gang.standing, +gang.let_go) == (+there, +standing, +let_go)
    assert gang.is_complete() == (there.total() >= 2)
    assert gang.started() == standing.total()
    assert len(gang.refused) <= let_go.total()


def test_without_a_gate_of_its_own_every_gate_holds_a_pod_back() -> None:
    state = {"gates": {GATE}, "node": "", "phase": "Pending", "leaving": False, "refused": True}
    ledger = Ledger()
    ledger.enter_group(group(1))
    ledger.enter_pod(pod("p", 1, "worker", state))
    gang = ledger.gangs[KEY]
    assert not gang.is_complete()
    assert not gang.unbound
    assert not gang.refused
