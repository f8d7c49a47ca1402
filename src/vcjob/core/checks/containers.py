"""Containers of a pod template: the rules that concern more than one field of a container.

Source: Kubernetes API reference of Container and what its validation asks for.
"""

from collections.abc import Iterator, Mapping

from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.checks.common import exactly_one, needs_text, twice
from vcjob.core.checks.env import check_env
from vcjob.core.checks.resources import check_resources

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def check_container(
    container: Object, path: Path, volumes: Mapping[str, Object], claims: set[str]
) -> Iterator[Problem]:
    """One container at ``path``, in a pod with these volumes and resource claims by name."""
    yield from needs_text(
        container,
        "image",
        path,
        "Kubernetes needs one; vcjob run does not pull images, so any name will do for it",
    )
    yield from check_env(container, path, volumes)
    yield from _check_port_names(container, path)
    yield from _check_mounts(container, path, volumes)
    yield from check_resources(container.get("resources", {}), (*path, "resources"), claims)
    yield from _check_handlers(container, path)
    context = container.get("securityContext", {})
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        yield Problem(
            "a privileged container cannot have allowPrivilegeEscalation false",
            (*path, "securityContext", "allowPrivilegeEscalation"),
        )


def _check_port_names(container: Object, path: Path) -> Iterator[Problem]:
    first_of: dict[str, Path] = {}
    for index, port in enumerate(container.get("ports", [])):
        where = (*path, "ports", index)
        if name := port.get("name"):
            first = first_of.setdefault(name, where)
            if first != where:
                yield twice(first, where, f"name {name}")


def _check_mounts(
    container: Object, path: Path, volumes: Mapping[str, Object]
) -> Iterator[Problem]:
    mounted = set()
    for index, mount in enumerate(container.get("volumeMounts", [])):
        where = (*path, "volumeMounts", index)
        mounted.add(mount.get("mountPath"))
        yield from _check_volume_exists(mount, where, volumes)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield Problem("subPath and subPathExpr exclude each other", (*where, "subPathExpr"))
        recursive = mount.get("recursiveReadOnly", "Disabled")
        if recursive != "Disabled" and not mount.get("readOnly"):
            yield Problem(
                f"recursiveReadOnly {recursive} needs readOnly: true",
                (*where, "recursiveReadOnly"),
            )
        privileged = container.get("securityContext", {}).get("privileged")
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            yield Problem(
                "mountPropagation Bidirectional needs a privileged container",
                (*where, "mountPropagation"),
            )
    for index, device in enumerate(container.get("volumeDevices", [])):
        where = (*path, "volumeDevices", index)
        yield from _check_volume_exists(device, where, volumes)
        if device.get("devicePath") in mounted:
            yield Problem(
                f"{device['devicePath']} is also the mountPath of a volume",
                (*where, "devicePath"),
            )


def _check_volume_exists(
    user: Object, path: Path, volumes: Mapping[str, Object]
) -> Iterator[Problem]:
    name = user.get("name")
    if name and name not in volumes:
        hint = suggest(name, volumes) or "add it to volumes of the pod"
        yield Problem(f'the pod has no volume "{name}"', (*path, "name"), hint)


def _check_handlers(container: Object, path: Path) -> Iterator[Problem]:
    is_init = len(path) > 1 and path[-2] == "initContainers"
    runs_beside = not is_init or container.get("restartPolicy") == "Always"
    for name in (*_PROBES, "lifecycle"):
        if name in container and not runs_beside:
            yield Problem(
                f"an init container cannot have {name}",
                (*path, name),
                "only one with restartPolicy Always (a sidecar) can",
            )
    for name in _PROBES:
        if name in container:
            yield from _check_probe(container[name], name, (*path, name))
    for name, handler in container.get("lifecycle", {}).items():
        if isinstance(handler, dict):
            where = (*path, "lifecycle", name)
            yield from exactly_one(handler, ("exec", "httpGet", "sleep", "tcpSocket"), where)
            yield from _check_exec(handler, where)


def _check_probe(probe: Object, name: str, path: Path) -> Iterator[Problem]:
    yield from exactly_one(probe, ("exec", "grpc", "httpGet", "tcpSocket"), path)
    yield from _check_exec(probe, path)
    if name != "readinessProbe" and probe.get("successThreshold", 1) not in (0, 1):
        yield Problem(f"successThreshold of a {name} must be 1", (*path, "successThreshold"))
    if name == "readinessProbe" and "terminationGracePeriodSeconds" in probe:
        yield Problem(
            "a readinessProbe ends nothing and has no terminationGracePeriodSeconds",
            (*path, "terminationGracePeriodSeconds"),
        )


def _check_exec(handler: Object, path: Path) -> Iterator[Problem]:
    if "exec" in handler and not handler["exec"].get("command"):
        yield Problem("exec lacks the command", (*path, "exec", "command"))
