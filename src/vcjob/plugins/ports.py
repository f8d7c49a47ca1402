"""Ports that plugins declare in containers, against those that the template declares."""

from collections.abc import Iterator, Mapping

from vcjob.api.problems import Path, Problem
from vcjob.api.types import Job, Object, Task
from vcjob.plugins.hosts import pod_spec


def containers_of(task: Task) -> list[Object]:
    """The containers of a task's template that can be read."""
    containers = pod_spec(task).get("containers")
    listed = containers if isinstance(containers, list) else ()
    return [one for one in listed if isinstance(one, dict)]


def declared_ports(container: Object) -> list[Object]:
    """The TCP ports that a container declares."""
    ports = container.get("ports")
    listed = ports if isinstance(ports, list) else ()
    return [one for one in listed if isinstance(one, dict) and one.get("protocol", "TCP") == "TCP"]


def name_clash(name: str, number: int, path: Path) -> Problem:
    """A container calls another port by the name that a plugin gives to port ``number``."""
    return Problem(
        f'the name "{name}" is needed for port {number}; names of ports must differ within a '
        "container",
        path,
        "choose another name",
        warning=True,
    )


def taken_name_problems(job: Job, name: str, number: int) -> Iterator[Problem]:
    """Port ``number`` is declared in every container, of all tasks, under one name."""
    for position, task in enumerate(job.spec.tasks):
        path: Path = ("spec", "tasks", position, "template", "spec", "containers")
        for index, container in enumerate(containers_of(task)):
            for place, port in enumerate(declared_ports(container)):
                if port.get("name") == name and port.get("containerPort") != number:
                    yield name_clash(name, number, (*path, index, "ports", place))


def clashes(
    task: Task, path: Path, container: str, ports: Mapping[str, int], *, by_name: bool = False
) -> Iterator[Problem]:
    """What hinders ``container`` of ``task`` from having ``ports`` (numbers by name).

    ``path`` is where the task's containers stand. ``by_name``: somebody looks for the ports by
    their names, so that a number that is declared under another name is not found.
    """
    name_of = {number: name for name, number in ports.items()}
    for position, one in enumerate(containers_of(task)):
        for index, port in enumerate(declared_ports(one)):
            number, name = port.get("containerPort"), str(port.get("name"))
            where = (*path, position, "ports", index)
            if one.get("name") != container:
                if number in name_of:
                    yield Problem(
                        f'container "{one.get("name")}" declares port {number}, at which container '
                        f'"{container}" serves; containers of a pod share their ports',
                        where,
                        "choose another port",
                        warning=True,
                    )
            elif name in ports and number != ports[name]:
                yield name_clash(name, ports[name], where)
            elif by_name and number in name_of and name != name_of[number]:
                yield Problem(
                    f'the Service looks for port {number} under the name "{name_of[number]}" and '
                    "does not find it",
                    where,
                    f"call it {name_of[number]}, or leave it out: the plugin declares it",
                    warning=True,
                )
