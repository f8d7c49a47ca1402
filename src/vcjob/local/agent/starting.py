"""From a container of a pod to the node's request that starts it, or the reason why it cannot."""

import math
from collections.abc import Mapping

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.api.quantity import parse_quantity
from vcjob.api.types import Object
from vcjob.local.agent.environment import (
    RuntimeDefaults,
    container_environment,
    expanded_command,
)
from vcjob.local.agent.pod_files import PodFiles
from vcjob.local.names.files import hostname
from vcjob.local.node.identity import IdMaps
from vcjob.local.node.messages import StartContainer
from vcjob.local.sandbox.launcher import ContainerSandbox, at_terminal, launch, own_shell
from vcjob.local.sandbox.machine import Machine
from vcjob.local.volumes.objects import Find
from vcjob.local.volumes.pod_volumes import PodVolumes


class CannotStart(VcjobError):
    """A container that can never run as it is described."""


class User(msgspec.Struct, frozen=True):
    """Whom a container runs as, in numbers of the pods' world."""

    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()


class Start(msgspec.Struct, frozen=True):
    """How to start a container; ``skipped`` are envFrom keys that cannot be variables.

    ``environment`` and ``directory`` are those of programs that enter it later.
    """

    request: StartContainer
    environment: Mapping[str, str]
    directory: str
    skipped: tuple[str, ...] = ()


def start_of(
    pod: Object,
    container: Object,
    run: str,
    *,
    find: Find,
    volumes: PodVolumes,
    files: PodFiles,
    machine: Machine,
    maps: IdMaps,
    capacity: Mapping[str, str],
    process_limit: int,
    terminal: bool = False,
) -> Start:
    """The request that starts ``container`` of ``pod`` (with its addresses) as ``run``.

    ``terminal``: its streams are one, of the container's own.
    Raises MissingReference (wait for it), VolumeRefused, UnsafePath and CannotStart (do not).
    """
    user = user_of(pod["spec"], container, maps)
    environment = container_environment(
        pod,
        container,
        find,
        RuntimeDefaults(
            hostname(pod), machine.python.executable, "/root" if user.user == 0 else "/"
        ),
        capacity,
    )
    command = expanded_command(container, environment.variables)
    if not command:
        raise CannotStart(
            f"container {container['name']} has no command, and its image "
            f"{container.get('image', '')} is not pulled on this machine"
        )
    variables = environment.variables
    command = own_shell(command, machine)
    if terminal:
        variables = {"TERM": "xterm", **variables}
        command = at_terminal(command, machine)
    mounts = volumes.mounts(container, environment.variables)
    context = container.get("securityContext") or {}
    sandbox = ContainerSandbox(
        hostname=hostname(pod),
        environment=variables,
        working_directory=container.get("workingDir") or "/",
        mounts=(*files.message_mounts(container), *mounts.mounts),
        files=files.texts(container),
        read_only_root=bool(context.get("readOnlyRootFilesystem")),
        user=user.user,
        group=user.group,
        groups=user.groups,
        drop_capabilities=tuple((context.get("capabilities") or {}).get("drop") or ()),
        terminal=terminal,
    )
    limits = (container.get("resources") or {}).get("limits") or {}
    request = StartContainer(
        container=run,
        pod=pod["metadata"]["uid"],
        options=(*mounts.make, *launch(sandbox, machine)),
        command=command,
        user=user.user,
        group=user.group,
        groups=user.groups,
        process_limit=process_limit,
        memory_limit=math.ceil(parse_quantity(limits.get("memory", 0))),
        terminal=terminal,
    )
    return Start(request, environment.variables, sandbox.working_directory, environment.skipped)


def user_of(pod_spec: Object, container: Object, maps: IdMaps) -> User:
    """Whom a container runs as: numbers that do not exist here become 0, the user of vcjob.

    Raises CannotStart where ``runAsNonRoot`` forbids it.
    """
    pod_context = pod_spec.get("securityContext") or {}
    context = {**pod_context, **(container.get("securityContext") or {})}
    wanted = context.get("runAsUser")
    if context.get("runAsNonRoot") and not wanted:
        raise CannotStart(
            f"container {container['name']} has runAsNonRoot and would run as root: set runAsUser"
        )
    user = wanted if wanted and maps.has_user(wanted) else 0
    group = context.get("runAsGroup") or 0
    extra = [*(pod_context.get("supplementalGroups") or ()), pod_context.get("fsGroup")]
    groups = dict.fromkeys(g for g in extra if g is not None and maps.has_group(g))
    return User(user, group if maps.has_group(group) else 0, tuple(groups))
