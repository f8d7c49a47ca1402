"""Strategic merge patches merge lists by the keys of their kind, and obey their directives."""

import copy

import pytest

from vcjob.api.kinds import NAMESPACE, POD, SERVICE
from vcjob.local.apiserver.schemas.kinds import OF_KINDS
from vcjob.local.apiserver.status import Refused
from vcjob.local.apiserver.strategic import strategic_merge

A, B, C = ({"name": name, "image": name} for name in "abc")


def containers(*items, **more):
    return {"spec": {"containers": list(items), **more}}


def finalizers(*items, **more):
    return {"metadata": {"finalizers": list(items), **more}}


CASES = {
    "an item is merged by its key": (
        POD, containers(A, B), containers({"name": "b", "image": "x"}),
        containers(A, {"name": "b", "image": "x"}),
    ),
    "a new item goes to the end": (POD, containers(A), containers(B), containers(A, B)),
    "an item is deleted": (
        POD, containers(A, B), containers({"$patch": "delete", "name": "a"}), containers(B),
    ),
    "a list is replaced": (
        POD, containers(A, B), containers({"$patch": "replace"}, C), containers(C),
    ),
    "the order is set": (
        POD, containers(A, B),
        {"spec": {"$setElementOrder/containers": [{"name": n} for n in "cab"], "containers": [C]}},
        containers(C, A, B),
    ),
    "what the order does not name stays where it is": (
        POD, containers(A, B, C),
        {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}},
        containers(C, B, A),
    ),
    "a list without keys is replaced": (
        POD, {"spec": {"tolerations": [{"key": "a"}]}}, {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "lists within items have keys of their own": (
        POD,
        containers({"name": "a", "env": [{"name": "X", "value": "1"}], "command": ["x", "y"]}),
        containers({"name": "a", "env": [{"name": "Y", "value": "2"}], "command": ["z"]}),
        containers({
            "name": "a",
            "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
            "command": ["z"],
        }),
    ),
    "ports of a Service are merged by their number": (
        SERVICE, {"spec": {"ports": [{"port": 80, "name": "x"}, {"port": 81}]}},
        {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}},
        {"spec": {"ports": [{"port": 80, "name": "x", "targetPort": 8080}, {"port": 81}]}},
    ),
    "an object is replaced": (
        POD, {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
        {"metadata": {"labels": {"c": "3"}}},
    ),
    "only some keys are retained": (
        POD, {"spec": {"securityContext": {"runAsUser": 1, "runAsGroup": 2}}},
        {"spec": {"securityContext": {"$retainKeys": ["runAsUser"], "runAsUser": 3}}},
        {"spec": {"securityContext": {"runAsUser": 3}}},
    ),
    "a set grows": (NAMESPACE, finalizers("a"), finalizers("a", "b"), finalizers("a", "b")),
    "texts are taken out of a set": (
        NAMESPACE, finalizers("a", "b"),
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, finalizers("b"),
    ),
    "null deletes": (POD, {"metadata": {"labels": {"a": "1"}}},
                     {"metadata": {"labels": {"a": None}}}, {"metadata": {"labels": {}}}),
    "owners are merged by their UID": (
        POD, {"metadata": {"ownerReferences": [{"uid": "1"}]}},
        {"metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1", "controller": True}]}},
        {"metadata": {"ownerReferences": [{"uid": "1", "controller": True}, {"uid": "2"}]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "before", "patch", "after"), CASES.values(), ids=CASES.keys())
def test_a_patch_merges(kind, before, patch, after):
    kept = copy.deepcopy(before)

    assert strategic_merge(before, patch, OF_KINDS[kind]) == after
    assert before == kept


@pytest.mark.parametrize(
    "patch",
    [
        [],
        containers({"image": "x"}),
        containers("x"),
        {"spec": {"$patch": "explode"}},
        {"spec": {"$retainKeys": "x"}},
        {"spec": {"$setElementOrder/containers": 1}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": {}}},
    ],
)
def test_a_patch_that_means_nothing_is_refused(patch):
    before = {**containers(A), **finalizers("a")}

    with pytest.raises(Refused) as refused:
        strategic_merge(before, patch, OF_KINDS[POD])
    assert refused.value.code == 400
