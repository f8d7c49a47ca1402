"""Ports that plugins declare in containers, against those that the template declares."""

from collections.abc import Iterable, Iterator, Mapping

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Job, Object, Task
from vcjob.plugins.draft import ContainerDraft, PodDraft
from vcjob.plugins.hosts import pod_spec


def containers_of(task: Task, group: str = "containers") -> list[Object]:
    """The containers of a task's template that can be read."""
    containers = pod_spec(task).get(group)
    listed = containers if isinstance(containers, list) else ()
    return [one for one in listed if isinstance(one, dict)]


def declared_ports(container: Object) -> list[Object]:
    """The ports that a container declares, of any protocol."""
    ports = container.get("ports")
    listed = ports if isinstance(ports, list) else ()
    return [one for one in listed if isinstance(one, dict)]


def declare(pod: PodDraft, containers: Iterable[ContainerDraft], name: str, number: int) -> None:
    """Declare a port in each of the pod's ``containers`` that does not declare the number yet.

    On the network of its node a declared port is taken from the node, and Kubernetes refuses a pod
    that takes one twice: there only the first container declares it. Init containers run one by
    one, so that each may.
    """
    on_node = pod.spec.get("hostNetwork") is True
    taken = on_node and any(_declares(container.body, number) for container in pod.containers)
    for container in containers:
        is_init = container in pod.init_containers
        if not taken or is_init:
            container.add_port(name, number)
            taken = taken or (on_node and not is_init)


def _declares(container: Object, number: int) -> bool:
    return any(port.get("containerPort") == number for port in declared_ports(container))


def name_clash(name: str, number: int, path: Path) -> Problem:
    """A container calls another port by the name that a plugin gives to port ``number``."""
    return Problem(
        f'the name "{name}" is needed for port {number}; names of ports must differ within a '
        "container",
        path,
        "choose another name",
        warning=True,
    )


def taken_name_problems(
    job: Job, name: str, number: int, groups: Iterable[str] = ("containers",)
) -> Iterator[Problem]:
    """Port ``number`` is declared in every container, of all tasks, under one name.

    ``groups`` are the fields of pods whose containers declare it.
    """
    for position, task in enumerate(job.spec.tasks):
        for group in groups:
            path: Path = ("spec", "tasks", position, "template", "spec", group)
            for index, container in enumerate(containers_of(task, group)):
                if _declares(container, number):
                    continue  # then the plugin adds none
                for place, port in enumerate(declared_ports(container)):
                    if port.get("name") == name:
                        yield name_clash(name, number, (*path, index, "ports", place))


def clashes(task: Task, path: Path, container: str, ports: Mapping[str, int]) -> Iterator[Problem]:
    """What hinders ``container`` of ``task`` from having ``ports`` (numbers by name).

    ``path`` is where the task's containers stand. Somebody looks for the ports by their names, so
    that a number that is declared under another name is not found.
    """
    for position, one in enumerate(containers_of(task)):
        for index, port in enumerate(declared_ports(one)):
            number, name = port.get("containerPort"), str(port.get("name"))
            wanted = next((key for key, value in ports.items() if value == number), "")
            where = (*path, position, "ports", index)
            if one.get("name") != container:
                if wanted and port.get("protocol", "TCP") == "TCP":
                    yield Problem(
                        f'container "{one.get("name")}" declares port {number}, at which container '
                        f'"{container}" serves; containers of a pod share their ports',
                        where,
                        "choose another port",
                        warning=True,
                    )
            elif name in ports and number != ports[name]:
                yield name_clash(name, ports[name], where)
            elif wanted and (name, port.get("protocol", "TCP")) != (wanted, "TCP"):
                yield Problem(
                    f'the Service looks for port {number} under the name "{wanted}" and does not '
                    "find it",
                    where,
                    f"call it {wanted}, or leave it out: the plugin declares it",
                    warning=True,
                )
