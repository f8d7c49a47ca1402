"""The books of Queues equal a recount, whatever comes and goes, and each change wakes its Queue."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.kinds import COMMAND, POD_GROUP, QUEUE, Kind
from vcjob.api.types import Object
from vcjob.controller.queue_books import QueueBooks

names = st.sampled_from("abc")
groups = st.tuples(
    st.just(POD_GROUP),
    names,
    st.fixed_dictionaries(
        {"queue": st.sampled_from(("a", "b", "")), "phase": st.sampled_from(("", "Running"))}
    ),
)
queues = st.tuples(
    st.just(QUEUE),
    names,
    st.fixed_dictionaries(
        {"parent": st.sampled_from(("", "a", "b")), "state": st.sampled_from(("Open", "Closed"))}
    ),
)
commands = st.tuples(st.just(COMMAND), names, st.fixed_dictionaries({"for": names}))
gone = st.tuples(st.sampled_from((POD_GROUP, QUEUE, COMMAND)), names, st.none())


def obj(kind: Kind, name: str, what: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": "x"} if kind.namespaced else {"name": name}
    if kind == QUEUE:
        spec = {"parent": what["parent"]} if what["parent"] else {}
        return {"metadata": metadata, "spec": spec, "status": {"state": what["state"]}}
    if kind == POD_GROUP:
        return {"metadata": metadata, "spec": {"queue": what["queue"]},
                "status": {"phase": what["phase"]}}  # fmt: skip
    target = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "name": what["for"]}
    return {"metadata": metadata, "target": target}


@given(st.lists(st.one_of(groups, queues, commands, gone), max_size=30))
def test_books_equal_a_recount(news: list[tuple[Kind, str, Any]]) -> None:
    woken: set[str] = set()
    books = QueueBooks(woken.add)
    there: dict[Kind, dict[str, Any]] = {QUEUE: {}, POD_GROUP: {}, COMMAND: {}}
    for kind, name, what in news:
        before = counted(there[POD_GROUP])
        was = dict(there[QUEUE])
        woken.clear()
        if what is None:
            there[kind].pop(name, None)
            books.drop(kind, ("x" if kind.namespaced else "", name))
        else:
            there[kind][name] = what
            books.put(kind, obj(kind, name, what))
        after = counted(there[POD_GROUP])
        assert {queue for queue in before | after if before[queue] != after[queue]} <= woken
        for queue, one in there[QUEUE].items():
            above = one["parent"]
            if kind == QUEUE and name in (queue, above) and was != there[QUEUE]:
                was_shut, is_shut = (all_.get(above, {}).get("state") == "Closed"
                                     for all_ in (was, there[QUEUE]))  # fmt: skip
                assert queue in woken or (name == above and was_shut == is_shut)
    after = counted(there[POD_GROUP])
    for queue in "abc":
        assert dict(books.phases(queue)) == after[queue]
        asked = [one["metadata"]["name"] for one in books.commands(queue)]
        assert asked == sorted(name for name, what in there[COMMAND].items()
                               if what["for"] == queue)  # fmt: skip
    for queue, one in there[QUEUE].items():
        found = books.above(queue)
        assert (found["metadata"]["name"] if found else "") == (
            one["parent"] if one["parent"] in there[QUEUE] else ""
        )


def counted(groups: dict[str, Any]) -> dict[str, dict[str, int]]:
    phases: dict[str, Counter[str]] = {name: Counter() for name in ("a", "b", "c", "default")}
    for one in groups.values():
        phases[one["queue"] or "default"][one["phase"] or "Pending"] += 1
    return {name: dict(count) for name, count in phases.items()}
