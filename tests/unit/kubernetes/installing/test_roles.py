"""Roles and bindings: as few as an installation needs, in the namespaces that it names."""

from typing import Any

import pytest
from authorizing import Asked, Authorizer

from vcjob.controller.cluster import Forbidden
from vcjob.kubernetes.installing.installation import (
    CERTIFICATE_SECRET,
    NAMESPACE,
    OPERATOR,
    WEBHOOK,
    Installation,
)
from vcjob.kubernetes.installing.roles import roles

PODS = Asked("create", "", "pods", "team")
NODES = Asked("list", "", "nodes")
QUEUES = Asked("list", "scheduling.volcano.sh", "queues")
MAKE_QUEUE = Asked("create", "scheduling.volcano.sh", "queues")
A_SECRET = Asked("get", "", "secrets", "team", "j-ssh")
ALL_SECRETS = Asked("list", "", "secrets", "team")
OWN_LEASE = Asked("patch", "coordination.k8s.io", "leases", NAMESPACE, "vcjob-operator")
OTHER_LEASE = Asked("patch", "coordination.k8s.io", "leases", NAMESPACE, "other")
SEE_VOLCANO = Asked(
    "get", "coordination.k8s.io", "leases", "volcano-system", "vc-controller-manager"
)
HOLD_VOLCANO = SEE_VOLCANO._replace(verb="patch")


def allowed(asked: Asked, account: str = OPERATOR, **options: Any) -> bool:
    installation = Installation(**options)
    authorizer = Authorizer(roles(installation), account, installation.namespace)
    try:
        authorizer.check(asked)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "yes", "no"),
    [
        (
            {},
            [PODS, NODES, QUEUES, MAKE_QUEUE, A_SECRET, OWN_LEASE, SEE_VOLCANO],
            [ALL_SECRETS, OTHER_LEASE, HOLD_VOLCANO],
        ),
        ({"scheduler": "volcano"}, [PODS, QUEUES], [NODES]),
        ({"scheduler": "builtin"}, [NODES], []),
        ({"secrets": False}, [PODS], [A_SECRET, ALL_SECRETS]),
        ({"beside_volcano": True}, [SEE_VOLCANO, QUEUES], [HOLD_VOLCANO, MAKE_QUEUE]),
        ({"take_over": True}, [SEE_VOLCANO, HOLD_VOLCANO], [OTHER_LEASE]),
        ({"namespaces": ("other",)}, [OWN_LEASE, SEE_VOLCANO], [PODS, A_SECRET, NODES, QUEUES]),
        ({"namespaces": ("team", "other")}, [PODS, A_SECRET], [NODES, QUEUES, ALL_SECRETS]),
        ({"namespaces": ("team",), "scheduler": "builtin"}, [PODS, NODES, QUEUES], [ALL_SECRETS]),
        ({"namespaces": ("other",), "scheduler": "builtin"}, [NODES], [PODS, A_SECRET]),
    ],
)
def test_what_the_operator_may_do(
    options: dict[str, Any], yes: list[Asked], no: list[Asked]
) -> None:
    assert [asked for asked in yes if not allowed(asked, **options)] == []
    assert [asked for asked in no if allowed(asked, **options)] == []


def test_the_webhook_may_touch_only_its_own_secret_and_configurations() -> None:
    group, kind = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"
    assert allowed(Asked("get", "", "secrets", NAMESPACE, CERTIFICATE_SECRET), WEBHOOK)
    assert not allowed(Asked("get", "", "secrets", NAMESPACE, "other"), WEBHOOK)
    assert not allowed(A_SECRET, WEBHOOK)
    assert allowed(Asked("patch", group, kind, "", "vcjob-webhook"), WEBHOOK)
    assert not allowed(Asked("patch", group, kind, "", "volcano-admission"), WEBHOOK)
    assert not allowed(PODS, WEBHOOK)
    assert not allowed(A_SECRET._replace(namespace=NAMESPACE, name=CERTIFICATE_SECRET), OPERATOR,
                       namespaces=("team",))  # fmt: skip


@pytest.mark.parametrize("scheduler", ["auto", "volcano"])
def test_for_some_namespaces_there_are_roles_only(scheduler: str) -> None:
    made = list(roles(Installation(namespaces=("a", "b"), scheduler=scheduler)))
    assert {one["kind"] for one in made} == {"Role", "RoleBinding"}
    assert {one["metadata"]["namespace"] for one in made} == {
        *("a", "b", NAMESPACE, "volcano-system")
    }


def test_volcano_s_leases_are_read_where_volcano_is_said_to_be() -> None:
    elsewhere = {"volcano_namespace": "batch", "beside_volcano": True}
    assert allowed(SEE_VOLCANO._replace(namespace="batch"), **elsewhere)
    assert not allowed(SEE_VOLCANO, **elsewhere)


def test_no_right_is_for_everything() -> None:
    for one in roles(Installation(take_over=True)):
        for rule in one.get("rules", ()):
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert "nonResourceURLs" not in rule


def test_every_resource_has_one_rule_in_a_role() -> None:
    for one in roles(Installation(take_over=True)):
        rules = [(*rule["apiGroups"], *rule["resources"], str(rule.get("resourceNames")))
                 for rule in one.get("rules", ())]  # fmt: skip
        assert len(set(rules)) == len(rules)


def test_roles_in_the_namespace_of_vcjob_do_not_share_a_name() -> None:
    made = list(roles(Installation(namespaces=(NAMESPACE,))))
    places = [(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in made]
    assert len(set(places)) == len(places)
