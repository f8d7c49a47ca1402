"""A pod in the making: what plugins add to it.

Parts that all pods of a task have in common are shared between them, so a draft never changes a
list or object that it was given: it puts a longer copy in its place.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from vcjob.api.types import Object


class ContainerDraft:
    """A container or init container. ``body`` is the container's own JSON object."""

    def __init__(self, container: Object) -> None:
        self.body = dict(container)

    @property
    def name(self) -> str:
        """The container's name."""
        name: str = self.body.get("name", "")
        return name

    @property
    def env(self) -> Sequence[Object]:
        """The environment entries so far."""
        return self.body.get("env") or ()

    def add_env(self, entries: Sequence[Object]) -> None:
        """Append environment entries; of equal names the last one wins (Kubernetes)."""
        _extend(self.body, "env", entries)

    def add_mount(self, volume: str, path: str, sub_path: str = "") -> None:
        """Mount a volume of the pod at ``path``."""
        mount = {"name": volume, "mountPath": path}
        if sub_path:
            mount["subPath"] = sub_path
        _extend(self.body, "volumeMounts", [mount])

    def add_port(self, name: str, number: int) -> None:
        """Declare a port, unless that number is declared already."""
        ports = self.body.get("ports") or ()
        if all(port.get("containerPort") != number for port in ports):
            _extend(self.body, "ports", [{"name": name, "containerPort": number}])

    def set_command(self, command: Sequence[str]) -> None:
        """Replace the container's command; its arguments stay."""
        self.body["command"] = list(command)


class PodDraft:
    """A pod of one task. ``labels``, ``annotations`` and ``spec`` are the pod's own objects."""

    def __init__(
        self,
        name: str,
        task: str,
        index: int,
        spec: Object,
        labels: dict[str, str],
        annotations: dict[str, str],
    ) -> None:
        self.name = name
        self.task = task
        self.index = index
        self.replace(spec, labels, annotations)

    def all_containers(self) -> Iterator[ContainerDraft]:
        """Containers, then init containers."""
        yield from self.containers
        yield from self.init_containers

    def set_default(self, field: str, value: Any) -> None:
        """Set a field of the pod's spec that the template leaves empty."""
        if not self.spec.get(field):
            self.spec[field] = value

    def add_volume(self, volume: Object) -> None:
        """Append a volume."""
        _extend(self.spec, "volumes", [volume])

    def add_init_container(self, container: Object) -> None:
        """Append an init container."""
        self.init_containers.append(ContainerDraft(container))

    def replace(self, spec: Object, labels: dict[str, str], annotations: dict[str, str]) -> None:
        """Go on with another spec, and with other labels and annotations."""
        self.spec = dict(spec)
        self.labels = labels
        self.annotations = annotations
        self.containers = [ContainerDraft(one) for one in spec.get("containers") or ()]
        self.init_containers = [ContainerDraft(one) for one in spec.get("initContainers") or ()]

    def finished_spec(self) -> Object:
        """The pod's spec with everything that was added."""
        if self.containers:
            self.spec["containers"] = [container.body for container in self.containers]
        if self.init_containers:
            self.spec["initContainers"] = [container.body for container in self.init_containers]
        return self.spec


def _extend(owner: Object, key: str, items: Sequence[Object]) -> None:
    if items:
        owner[key] = [*(owner.get(key) or ()), *items]
