"""The webhook configurations: what API servers are told to ask, and to whom."""

import pytest

from vcjob.admission.configurations import (
    WEBHOOKS,
    Webhook,
    webhook_configurations,
    with_authority,
)
from vcjob.api.kinds import POD_GROUP
from vcjob.api.types import Object


def entries(configurations: list[Object]) -> dict[str, Object]:
    return {entry["name"]: entry for one in configurations for entry in one["webhooks"]}


def test_both_configurations_bear_the_same_name_and_each_its_own_webhooks() -> None:
    mutating, validating = webhook_configurations("vcjob-system")
    assert (mutating["kind"], validating["kind"]) == (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    )
    assert mutating["metadata"]["name"] == validating["metadata"]["name"] == "vcjob-webhook"
    assert [entry["name"] for entry in mutating["webhooks"]] == [
        "mutatejob.vcjob.dev",
        "mutatequeue.vcjob.dev",
    ]
    assert [entry["name"] for entry in validating["webhooks"]] == [
        "validatejob.vcjob.dev",
        "validatequeue.vcjob.dev",
        "validatepodgroup.vcjob.dev",
    ]


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one.name)
def test_every_webhook_fails_in_time_and_has_no_side_effects(webhook: Webhook) -> None:
    entry = entries(webhook_configurations("jobs", "door"))[webhook.name]
    assert entry["clientConfig"] == {
        "service": {
            "namespace": "jobs",
            "name": "door",
            "port": 443,
            "path": webhook.path,
        }
    }
    for field, value in {
        "failurePolicy": "Ignore" if webhook.kind == POD_GROUP else "Fail",
        "timeoutSeconds": 10,
        "sideEffects": "None",
        "matchPolicy": "Equivalent",
        "admissionReviewVersions": ["v1"],
    }.items():
        assert entry[field] == value


def test_the_objects_themselves_are_asked_about_and_no_subresource() -> None:
    rules = [rule for one in entries(webhook_configurations("a")).values() for rule in one["rules"]]
    assert {resource for rule in rules for resource in rule["resources"]} == {
        "jobs",
        "queues",
        "podgroups",
    }


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one.name)
def test_what_is_being_deleted_goes_though_nobody_answers(webhook: Webhook) -> None:
    """Jobs that are deleted in the foreground wait for a change: that a finalizer is taken off."""
    conditions = entries(webhook_configurations("a"))[webhook.name].get("matchConditions", [])
    asks = [f"{one['name']}: {one['expression']}" for one in conditions]
    wanted = 'stays: request.operation != "UPDATE" || !has(object.metadata.deletionTimestamp)'
    assert asks == ([wanted] if "UPDATE" in webhook.operations else [])


def test_kube_system_and_the_own_namespace_are_exempt() -> None:
    selector = entries(webhook_configurations("own"))["validatejob.vcjob.dev"]["namespaceSelector"]
    assert selector == {
        "matchExpressions": [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": ["kube-system", "own"],
            }
        ]
    }


def test_an_installation_for_some_namespaces_asks_about_these_and_no_queue() -> None:
    found = entries(webhook_configurations("own", namespaces=("b", "a")))
    assert set(found) == {
        "mutatejob.vcjob.dev",
        "validatejob.vcjob.dev",
        "validatepodgroup.vcjob.dev",
    }
    for entry in found.values():
        assert entry["namespaceSelector"]["matchExpressions"][1] == {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": ["a", "b"],
        }


def test_a_given_authority_stands_in_every_entry() -> None:
    found = entries(webhook_configurations("own", authority="UEVN"))
    assert {entry["clientConfig"]["caBundle"] for entry in found.values()} == {"UEVN"}


def test_another_authority_is_written_into_our_entries_and_nothing_else_changes() -> None:
    (configuration, _) = webhook_configurations("own")
    ours, theirs = configuration["webhooks"]
    ours["futureField"] = {"kept": True}
    theirs["clientConfig"]["service"]["name"] = "somebody-else"
    changed = with_authority(configuration, "TkVX", "own", "vcjob-webhook")
    assert changed == [
        {**ours, "clientConfig": {**ours["clientConfig"], "caBundle": "TkVX"}},
        theirs,
    ]
    again = {**configuration, "webhooks": changed}
    assert with_authority(again, "TkVX", "own", "vcjob-webhook") is None
    assert "caBundle" not in ours["clientConfig"], "the object that was read is left as it is"


@pytest.mark.parametrize("webhooks", [None, [], [{"clientConfig": {"url": "https://a"}}], [{}]])
def test_without_entries_of_ours_there_is_nothing_to_write(webhooks: object) -> None:
    assert with_authority({"webhooks": webhooks}, "TkVX", "own", "vcjob-webhook") is None
