"""The objects that are installed: complete, by the rules of Kubernetes, and without surprises."""

from collections.abc import Iterator
from typing import Any

import click
import pytest

from vcjob.admission.configurations import (
    CONFIGURATION_NAME,
    SERVICE_NAME,
    SERVICE_PORT,
    webhook_configurations,
)
from vcjob.api.kinds import NAMESPACE as NAMESPACE_KIND
from vcjob.api.kinds import QUEUE, SERVICE
from vcjob.api.names import WIDENING
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.pods import POD_SPEC
from vcjob.api.types import Object
from vcjob.cli.main import cli
from vcjob.core.checks.objects import check_object
from vcjob.kubernetes.beside_volcano import CONTROLLER_LEASE
from vcjob.kubernetes.installing.installation import (
    OPERATOR,
    VOLCANO_LEASES,
    WEBHOOK,
    Installation,
    is_ours,
)
from vcjob.kubernetes.installing.objects import Part, objects_of
from vcjob.kubernetes.scheduler_choice import SCHEDULER_LEASE

PLAIN = Installation()


def everything(installation: Installation = PLAIN) -> list[Object]:
    configurations = webhook_configurations(installation.namespace)
    return [obj for part in Part for obj in objects_of(part, installation, configurations)]


def of_kind(kind: str, installation: Installation = PLAIN) -> dict[str, Object]:
    made = everything(installation)
    return {one["metadata"]["name"]: one for one in made if one["kind"] == kind}


def pods(installation: Installation = PLAIN) -> Iterator[Object]:
    for deployment in of_kind("Deployment", installation).values():
        yield deployment["spec"]["template"]


def test_every_object_is_known_as_part_of_vcjob() -> None:
    made = everything()
    assert len(made) > 20
    assert [one["metadata"]["name"] for one in made if not is_ours(one)] == []
    assert {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in made} == {"vcjob"}


SINCE_1_28 = {
    "names", "scope", "group", "versions",
    *("name", "served", "storage", "schema", "subresources", "additionalPrinterColumns"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}  # fmt: skip
"""What definitions say that API servers of 1.28 understand; rules in CEL came and grew later."""


def test_definitions_say_nothing_that_the_oldest_api_server_does_not_understand() -> None:
    def extensions(schema: Any) -> Iterator[str]:
        if isinstance(schema, list):
            for one in schema:
                yield from extensions(one)
        elif isinstance(schema, dict):
            yield from (key for key in schema if key.startswith("x-"))
            for one in schema.values():
                yield from extensions(one)

    for definition in of_kind("CustomResourceDefinition").values():
        spec = definition["spec"]
        assert set(spec) <= SINCE_1_28
        for version in spec["versions"]:
            assert set(version) <= SINCE_1_28
            assert set(extensions(version["schema"])) <= SINCE_1_28


def test_no_two_objects_are_the_same() -> None:
    made = everything(Installation(namespaces=("vcjob-system", "a")))
    places = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
              for one in made]  # fmt: skip
    assert len(set(places)) == len(places)


def test_pods_have_no_field_that_kubernetes_does_not_know() -> None:
    installation = Installation(priority_class="high", namespaces=())
    assert [check_fields(pod["spec"], POD_SPEC) for pod in pods(installation)] == [[], []]


def test_pods_meet_the_restricted_standard() -> None:
    """Source: Kubernetes documentation, "Pod Security Standards"."""
    for pod in pods():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & spec.keys()
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_probes_and_ports_fit_each_other_and_the_arguments() -> None:
    for pod in pods():
        [container] = pod["spec"]["containers"]
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "health"
        listens = [one for one in container["args"] if "address=" in one]
        assert {one.rpartition(":")[2] for one in listens} == set(ports.values())
        assert f"--health-address=:{ports['health']}" in listens


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"take_over": True, "third_party_plugins": True, "allowed_annotations": WIDENING},
        {"namespaces": ("a", "b"), "scheduler": "builtin", "namespace": "mine"},
    ],
)
def test_arguments_are_options_that_the_commands_have(options: dict[str, Any]) -> None:
    for pod in pods(Installation(**options)):
        name, *arguments = pod["spec"]["containers"][0]["args"]
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, list(arguments))  # raises UsageError


def test_selectors_match_the_pods_of_their_own_deployment_only() -> None:
    deployments = of_kind("Deployment")
    for name, deployment in deployments.items():
        selectors = [deployment["spec"]["selector"]["matchLabels"]]
        selectors.append(of_kind("PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"])
        if name == WEBHOOK:
            selectors.append(of_kind("Service")[WEBHOOK]["spec"]["selector"])
        for selector in selectors:
            matched = [
                other
                for other, one in deployments.items()
                if selector.items() <= one["spec"]["template"]["metadata"]["labels"].items()
            ]
            assert matched == [name]


def test_the_service_is_the_one_that_the_configurations_name() -> None:
    service = of_kind("Service")[SERVICE_NAME]
    assert [port["port"] for port in service["spec"]["ports"]] == [SERVICE_PORT]
    assert check_object(service, SERVICE) == []
    configured = of_kind("ValidatingWebhookConfiguration")[CONFIGURATION_NAME]["webhooks"]
    named = {one["clientConfig"]["service"]["namespace"] for one in configured}
    assert named == {service["metadata"]["namespace"]}


def test_names_are_those_that_the_operator_looks_for() -> None:
    assert VOLCANO_LEASES == (CONTROLLER_LEASE, SCHEDULER_LEASE)
    assert CONFIGURATION_NAME == WEBHOOK


def test_accounts_are_those_of_the_pods_and_give_nobody_else_a_token() -> None:
    accounts = of_kind("ServiceAccount")
    assert set(accounts) == {pod["spec"]["serviceAccountName"] for pod in pods()}
    assert not any(one["automountServiceAccountToken"] for one in accounts.values())
    assert all(pod["spec"]["automountServiceAccountToken"] for pod in pods())


@pytest.mark.parametrize(
    ("name", "made"), [("x", True), ("kube-system", False), ("default", False)]
)
def test_a_namespace_of_the_cluster_is_not_restricted(name: str, made: bool) -> None:
    namespaces = of_kind("Namespace", Installation(namespace=name))
    assert set(namespaces) == ({name} if made else set())
    assert [check_object(one, NAMESPACE_KIND) for one in namespaces.values()] == [[]] * made


def test_without_a_webhook_nothing_of_it_is_left() -> None:
    for installation in (Installation(webhook=False), Installation(namespaces=("a",))):
        assert [one["metadata"]["name"] for one in everything(installation)
                if WEBHOOK in one["metadata"]["name"]] == []  # fmt: skip


def test_queues_are_valid() -> None:
    queues = of_kind("Queue")
    assert list(queues) == ["root", "default"]
    assert [check_object(one, QUEUE) for one in queues.values()] == [[], []]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"scheduler": "builtin"}, "--scheduler=builtin"),
        ({"namespaces": ("a", "b")}, "--namespaces=a,b"),
        ({"namespaces": ("a",)}, "--scheduler=volcano"),
        ({"namespaces": ("a",), "scheduler": "builtin"}, "--scheduler=builtin"),
        ({"take_over": True}, "--take-over"),
        ({"volcano_namespace": "volcano"}, "--volcano-namespace=volcano"),
        ({"third_party_plugins": True}, "--third-party-plugins"),
        ({"namespace": "mine"}, "--lease-namespace=mine"),
        ({"allowed_annotations": ("vcjob.dev/service-labels",)},
         "--allow-annotation=vcjob.dev/service-labels"),
    ],
)  # fmt: skip
def test_the_operator_is_told(options: dict[str, Any], argument: str) -> None:
    [container] = of_kind("Deployment", Installation(**options))[OPERATOR]["spec"]["template"][
        "spec"
    ]["containers"]
    assert argument in container["args"]


@pytest.mark.parametrize("flag", ["--take-over", "--third-party-plugins", "--allow-annotation"])
def test_what_widens_rights_is_off_by_itself(flag: str) -> None:
    arguments = [one for pod in pods() for one in pod["spec"]["containers"][0]["args"]]
    assert not any(one.startswith(flag) for one in arguments)
