"""Making, repairing and pruning a Job's objects."""

from typing import Any

import pytest

from vcjob.api.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD_GROUP, SERVICE
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Object
from vcjob.core.supporting import Create, Owned, Remove, Repair, group_steps, steps

OURS = {MANAGED_BY: MANAGED_BY_VALUE}


def obj(kind: Any, name: str = "lc", **parts: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": OURS}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **parts}


def owned(*objects: Object) -> Owned:
    kinds = {kind.kind: kind for kind in (CONFIG_MAP, SERVICE, PERSISTENT_VOLUME_CLAIM)}
    return {(kinds[one["kind"]], one["metadata"]["name"]): one for one in objects}


def test_what_is_missing_is_made_in_order() -> None:
    wanted = [obj(CONFIG_MAP), obj(SERVICE)]
    assert list(steps(wanted, {})) == [Create(CONFIG_MAP, wanted[0]), Create(SERVICE, wanted[1])]


@pytest.mark.parametrize(
    ("there", "wanted", "patch"),
    [
        # What an API server adds is no difference.
        ({"spec": {"type": "ClusterIP", "ports": []}}, {"spec": {"type": "ClusterIP"}}, None),
        ({"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}}, {"spec": {"ports": [{"port": 1}]}},
         None),
        ({"spec": {}}, {"spec": {"selector": {}}}, None),
        # What we say and is not so is put right.
        ({"spec": {"ports": [{"port": 2}]}}, {"spec": {"ports": [{"port": 1}]}},
         {"spec": {"ports": [{"port": 1}]}}),
        ({"spec": {}}, {"spec": {"clusterIP": "None"}}, {"spec": {"clusterIP": "None"}}),
        ({}, {"spec": {"clusterIP": "None"}}, {"spec": {"clusterIP": "None"}}),
        # Data are ours as a whole.
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "3"}}, {"data": {"a": "3", "b": None}}),
        ({"data": {"a": "1"}}, {"data": {"a": "1"}}, None),
    ],
)  # fmt: skip
def test_what_differs_is_repaired(there: Any, wanted: Any, patch: Any) -> None:
    found = list(steps([obj(SERVICE, **wanted)], owned(obj(SERVICE, **there))))
    expected = [Repair(SERVICE, "default", "lc", "uid-lc", patch)] if patch else []
    assert found == expected


def test_a_label_that_somebody_took_away_comes_back() -> None:
    bare = obj(CONFIG_MAP)
    bare["metadata"] = {**bare["metadata"], "labels": {"their": "own"}}
    (repair,) = steps([obj(CONFIG_MAP)], owned(bare))
    assert isinstance(repair, Repair)
    assert repair.patch == {"metadata": {"labels": OURS}}


def test_objects_of_ours_that_are_no_longer_wanted_go_and_claims_stay() -> None:
    there = owned(obj(CONFIG_MAP, "old"), obj(PERSISTENT_VOLUME_CLAIM, "data"))
    assert list(steps([], there)) == [Remove(CONFIG_MAP, "default", "old", "uid-old")]


def test_what_is_being_deleted_is_left_alone() -> None:
    leaving = obj(CONFIG_MAP, data={"a": "1"})
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not list(steps([obj(CONFIG_MAP, data={"a": "2"})], owned(leaving)))
    assert not list(steps([], owned(leaving)))


@pytest.mark.parametrize(
    ("there", "wanted", "patch"),
    [
        ({"minMember": 2, "queue": "a"}, {"minMember": 2, "queue": "b"}, None),
        ({"minMember": 2}, {"minMember": 3}, {"minMember": 3}),
        ({"minMember": 2}, {}, {"minMember": None}),
        ({"minTaskMember": {"a": 1, "b": 1}}, {"minTaskMember": {"a": 2}},
         {"minTaskMember": {"a": 2}}),
        ({"minResources": {"cpu": "2", "pods": "2"}}, {"minResources": {"pods": "1"}},
         {"minResources": {"cpu": None, "pods": "1"}}),
        ({"minResources": {"cpu": "2"}}, {"minResources": {}}, {"minResources": {"cpu": None}}),
        ({}, {"minResources": {}}, None),
    ],
)  # fmt: skip
def test_a_podgroup_follows_but_keeps_its_queue_and_its_tasks(
    there: Any, wanted: Any, patch: Any
) -> None:
    found = list(group_steps(obj(POD_GROUP, spec=wanted), obj(POD_GROUP, spec=there)))
    expected = [Repair(POD_GROUP, "default", "lc", "uid-lc", {"spec": patch})] if patch else []
    assert found == expected
