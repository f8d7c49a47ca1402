"""What a pod costs the packet filter. (What the filter decides: tests/property.)"""

from typing import Any

import pytest

from vcjob.api import names
from vcjob.local.network.policy import PolicyTable
from vcjob.local.network.rules import GROUP_MAPS, POD_MAPS, Direction, Element, SetKind, Update

INGRESS_GROUPS, INGRESS_PODS = GROUP_MAPS[Direction.INGRESS], POD_MAPS[Direction.INGRESS]


def pod(number: int, job: str, **labels: str) -> dict[str, Any]:
    own = {names.JOB_NAME: job, names.JOB_NAMESPACE: "default", names.TASK_SPEC: "worker"}
    return {"metadata": {"name": f"{job}-{number}", "namespace": "default", "labels": own | labels}}


def own_policy(job: str) -> dict[str, Any]:
    """As the svc plugin makes it."""
    own = {"matchLabels": {names.JOB_NAME: job, names.JOB_NAMESPACE: "default"}}
    return {
        "metadata": {"name": job, "namespace": "default"},
        "spec": {
            "podSelector": own,
            "ingress": [{"from": [{"podSelector": own}]}],
            "policyTypes": ["Ingress"],
        },
    }


def by_label(label: str) -> dict[str, Any]:
    selector = {"matchLabels": {label: "yes"}}
    return {
        "metadata": {"name": label, "namespace": "default"},
        "spec": {"podSelector": selector, "ingress": [{"from": [{"podSelector": selector}]}]},
    }


def test_pods_of_a_job_come_and_go_without_a_change_of_the_filter() -> None:
    table = PolicyTable()
    table.set_policy(own_policy("a"))
    table.set_pod(pod(0, "a"), "10.0.0.2")
    assert table.take_update()
    for number in range(1, 100):
        table.set_pod(pod(number, "a"), f"10.0.0.{number + 2}")
    for number in range(1, 100):
        table.remove_pod("default", f"a-{number}")
    assert table.take_update() == Update()


def test_pods_of_a_job_share_a_group_and_jobs_do_not() -> None:
    table = PolicyTable()
    assert table.set_pod(pod(0, "a"), "10.0.0.2") == table.set_pod(pod(1, "a"), "10.0.0.3") == 1
    assert table.set_pod(pod(0, "b"), "10.0.0.4") == 2


@pytest.mark.parametrize("others", [0, 300])
def test_a_pod_that_other_labels_select_costs_its_own_elements_only(others: int) -> None:
    table = PolicyTable()
    table.set_policy(by_label("special"))
    for number in range(others + 1):
        table.set_pod(pod(number, "a", special="yes"), f"10.0.{number // 250}.{number % 250}")
    table.take_update()
    table.set_pod(pod(others + 1, "a", special="yes"), "10.9.9.9")
    update = table.take_update()
    assert not update.new_chains + update.new_sets + update.gone_elements
    assert {(e.set, e.key) for e in update.new_elements if e.set == INGRESS_PODS} == {
        (INGRESS_PODS, "10.9.9.9")
    }
    assert len(update.new_elements) == 2


def test_a_pod_is_isolated_after_its_peers_have_been_let_in() -> None:
    table = PolicyTable()
    table.set_pod(pod(0, "a"), "10.0.0.2")
    table.take_update()
    table.set_policy(own_policy("a"))
    update = table.take_update()
    (peers, kind), *_ = update.new_sets
    assert [element.set for element in update.new_elements] == [peers, INGRESS_GROUPS]
    assert update.new_elements[0] == Element(peers, kind, 1)
    assert kind is SetKind.GROUPS


def test_an_unchanged_policy_told_again_changes_nothing() -> None:
    table = PolicyTable()
    table.set_pod(pod(0, "a"), "10.0.0.2")
    table.set_policy(own_policy("a"))
    table.take_update()
    changed = own_policy("a")
    changed["metadata"]["annotations"] = {"x": "y"}
    table.set_policy(changed)
    assert not table.take_update()


def test_what_was_never_told_may_be_removed() -> None:
    table = PolicyTable()
    table.remove_pod("default", "a")
    table.remove_policy("default", "a")
    table.remove_namespace("default")
    assert not table.take_update()
