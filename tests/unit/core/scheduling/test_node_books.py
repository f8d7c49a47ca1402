"""The books of the nodes equal a recount, in whatever order news of pods and nodes come in."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.types import Object
from vcjob.core.scheduling.node_books import NodeBooks
from vcjob.core.scheduling.nodes import node_facts
from vcjob.core.scheduling.shapes import pod_shape

NODES = ("n", "m")


def pod(uid: str, version: int, node: str, phase: str, cpu: int) -> Object:
    container = {"resources": {"requests": {"cpu": str(cpu)}}}
    spec: Object = {"containers": [container]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": uid, "namespace": "x", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def node(name: str, cpu: int, **spec: Any) -> Object:
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": {"cpu": str(cpu), "pods": "9"}, "conditions": [ready]}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


# What becomes of one pod, in the order in which it happens; each step is a version.
courses = st.builds(
    lambda node, ends, steps: [("", "Pending"), (node, "Pending"), (node, "Running"), (node, ends)][
        : steps
    ],
    st.sampled_from((*NODES, "unknown")),
    st.sampled_from(("Succeeded", "Failed")),
    st.integers(1, 4),
)  # fmt: skip
stories = st.lists(st.tuples(courses, st.integers(0, 3), st.booleans()), max_size=5)


@given(stories, st.randoms(use_true_random=False), st.integers(0, 9))
def test_books_equal_a_recount(
    told: list[tuple[list[tuple[str, str]], int, bool]], order: Any, cpu: int
) -> None:
    news: list[tuple[Object, bool]] = []
    last: list[Object] = []
    for number, (course, asked, gone) in enumerate(told):
        versions = [pod(f"p{number}", 10 * number + step, *state, asked)
                    for step, state in enumerate(course, start=1)]  # fmt: skip
        late = list(versions)
        order.shuffle(late)
        news += [(one, False) for one in late]
        news.append((versions[-1], False))  # the last news come last, or come again
        if gone:
            news.append((versions[-1], True))
        else:
            last.append(versions[-1])
    books = NodeBooks()
    for name in NODES:
        books.enter_node(node(name, cpu))
    for one, gone in news:
        books.enter_pod(one, gone=gone)
    left = books.place()._room
    for name in NODES:
        recounted = dict(node_facts(node(name, cpu)).allocatable)
        for one in last:
            if one["spec"].get("nodeName") == name and one["status"]["phase"] in (
                "Pending",
                "Running",
            ):
                for resource, amount in pod_shape(one["spec"]).requests:
                    recounted[resource] -= amount
        assert left[name] == recounted


def test_it_is_told_when_room_grows() -> None:
    books = NodeBooks()
    assert books.enter_node(node("n", 4))
    assert not books.enter_node(node("n", 4)), "a heartbeat"
    assert books.enter_node(node("n", 4, unschedulable=True))
    assert not books.enter_pod(pod("p", 1, "n", "Running", 1))
    assert not books.enter_pod(pod("p", 2, "n", "Running", 1))
    assert books.enter_pod(pod("p", 3, "n", "Succeeded", 1))
    assert not books.enter_pod(pod("p", 3, "n", "Succeeded", 1), gone=True)
    assert not books.enter_pod(pod("q", 1, "n", "Running", 1))
    assert books.enter_pod(pod("q", 1, "n", "Running", 1), gone=True)
    assert books.enter_node(node("n", 4), gone=True)
    assert books.place().capacity == {}


def test_late_news_of_a_pod_that_ended_take_no_room_again() -> None:
    books = NodeBooks()
    books.enter_node(node("n", 4))
    books.enter_pod(pod("p", 5, "n", "Failed", 1))
    books.enter_pod(pod("p", 4, "n", "Running", 1))
    books.enter_pod(pod("p", 6, "n", "Failed", 1))
    assert books.place()._room["n"]["cpu"] == 4_000_000_000
