"""Pod templates: the rules of Kubernetes that concern more than one field of a pod.

Source: Kubernetes API reference of PodSpec and what its validation asks of pod templates
(admission.md section 2, rule 8). Types, bounds, formats and choices of single fields are in the
schema; containers and volumes have files of their own.
"""

from collections.abc import Iterator

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Object
from vcjob.core.checks.common import twice
from vcjob.core.checks.containers import check_container
from vcjob.core.checks.pod_volumes import check_pod_volumes
from vcjob.core.checks.subject import Subject


def check_templates(subject: Subject) -> Iterator[Problem]:
    """The pod template of each task, once a task however many replicas it has."""
    for index, task in enumerate(subject.tasks):
        spec = task.get("template", {}).get("spec")
        if isinstance(spec, dict):
            yield from check_pod_spec(spec, ("spec", "tasks", index, "template", "spec"))


def check_pod_spec(spec: Object, path: Path) -> Iterator[Problem]:
    """The spec of one pod, whose fields have the right types."""
    yield from check_pod_volumes(spec.get("volumes", []), (*path, "volumes"))
    volumes = {volume.get("name", ""): volume for volume in spec.get("volumes", [])}
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims", [])}
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group, [])):
            where = (*path, group, index)
            yield from check_container(container, where, volumes, claims)
    yield from _check_container_names(spec, path)
    yield from _check_host_ports(spec, path)
    if spec.get("ephemeralContainers"):
        yield Problem(
            "a pod template cannot have ephemeralContainers",
            (*path, "ephemeralContainers"),
            "they are added to running pods; use containers",
        )
    if "restartPolicy" not in spec and spec.get("containers"):
        yield Problem(
            "restartPolicy is not given and so is Always: containers that end are started again "
            "and the task never completes",
            path,
            "set restartPolicy to Never or OnFailure",
            warning=True,
        )
    yield from _check_dns(spec, path)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield Problem("shareProcessNamespace and hostPID exclude each other", (*path, "hostPID"))
    for index, toleration in enumerate(spec.get("tolerations", [])):
        yield from _check_toleration(toleration, (*path, "tolerations", index))
    yield from _check_expressions(spec.get("affinity", {}), (*path, "affinity"))


def _check_container_names(spec: Object, path: Path) -> Iterator[Problem]:
    """Names differ between init containers and containers; within a list the schema says so."""
    first_of = {
        container["name"]: (*path, "initContainers", index)
        for index, container in enumerate(spec.get("initContainers", []))
        if container.get("name")
    }
    for index, container in enumerate(spec.get("containers", [])):
        if first := first_of.get(container.get("name", "")):
            yield twice(first, (*path, "containers", index), f"name {container['name']}")


def _check_host_ports(spec: Object, path: Path) -> Iterator[Problem]:
    first_of: dict[tuple[int, str, str], Path] = {}
    for container_index, container in enumerate(spec.get("containers", [])):
        for index, port in enumerate(container.get("ports", [])):
            where = (*path, "containers", container_index, "ports", index)
            host_port = port.get("hostPort", 0)
            if spec.get("hostNetwork"):
                if host_port and host_port != port.get("containerPort"):
                    yield Problem(
                        "with hostNetwork, hostPort must be the same as containerPort",
                        (*where, "hostPort"),
                        "leave hostPort out",
                    )
                host_port = port.get("containerPort", 0)
            if host_port:
                key = (host_port, port.get("protocol", "TCP"), port.get("hostIP", ""))
                if (first := first_of.setdefault(key, where)) != where:
                    yield twice(first, where, f"port {host_port} of the node")


def _check_dns(spec: Object, path: Path) -> Iterator[Problem]:
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        yield Problem(
            "dnsPolicy None needs the name servers to be listed",
            (*path, "dnsPolicy"),
            "add dnsConfig.nameservers",
        )


def _check_toleration(toleration: Object, path: Path) -> Iterator[Problem]:
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key") and operator != "Exists":
        yield Problem(
            "a toleration without a key must have the operator Exists", (*path, "operator")
        )
    if operator == "Exists" and toleration.get("value"):
        yield Problem("with the operator Exists there can be no value", (*path, "value"))
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        yield Problem("tolerationSeconds needs the effect NoExecute", (*path, "tolerationSeconds"))


def _check_expressions(value: object, path: Path) -> Iterator[Problem]:
    """The numbers of values that the operators of selectors take, wherever they stand."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_expressions(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("matchExpressions", "matchFields"):
                for index, expression in enumerate(item):
                    yield from _check_expression(expression, (*path, key, index))
            else:
                yield from _check_expressions(item, (*path, key))


def _check_expression(expression: Object, path: Path) -> Iterator[Problem]:
    operator, values = expression.get("operator"), expression.get("values", [])
    if operator in ("In", "NotIn") and not values:
        yield Problem(f"the operator {operator} needs values", (*path, "values"))
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Problem(f"the operator {operator} takes no values", (*path, "values"))
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield Problem(f"the operator {operator} takes just one value", (*path, "values"))
