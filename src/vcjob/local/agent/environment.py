"""The environment and the command of one container, from its pod and what that refers to.

Sources: Kubernetes documentation, "Define Environment Variables for a Container", "Define
Dependent Environment Variables", API reference of EnvVar, EnvVarSource and EnvFromSource.
"""

import re
from collections.abc import Mapping

import msgspec

from vcjob.api.kinds import CONFIG_MAP, SECRET
from vcjob.api.types import Object
from vcjob.local.sandbox.launcher import search_path
from vcjob.local.variables import expanded
from vcjob.local.volumes.downward import resource_field, variable_field
from vcjob.local.volumes.objects import Find, MissingReference, text_data

_NAME = re.compile(r"[ -<>-~]+", re.ASCII)  # Kubernetes: printable ASCII without "="


class RuntimeDefaults(msgspec.Struct, frozen=True):
    """What a container runtime sets before anything that the pod asks for.

    ``python`` is the interpreter that is ``python`` inside, ``home`` the user's home inside.
    """

    hostname: str
    python: str
    home: str = "/root"


class ContainerEnvironment(msgspec.Struct, frozen=True):
    """The variables of a container; ``skipped`` are envFrom names that cannot be one."""

    variables: Mapping[str, str]
    skipped: tuple[str, ...] = ()


def container_environment(
    pod: Object,
    container: Object,
    find: Find,
    defaults: RuntimeDefaults,
    allocatable: Mapping[str, str],
) -> ContainerEnvironment:
    """The environment of ``container``: the runtime's, then ``envFrom``, then ``env`` in order.

    ``allocatable`` (quantities by resource name) stands for limits that are not set. Raises
    MissingReference, whose sentence suits the reason CreateContainerConfigError.
    """
    variables = {"HOSTNAME": defaults.hostname, "HOME": defaults.home}
    skipped: list[str] = []
    for source in container.get("envFrom") or ():
        for name, value in _all_of(container, source, find).items():
            if _usable(name, value):
                variables[name] = value
            else:
                skipped.append(name)
    known: dict[str, str] = {
        name: value for name, value in variables.items() if name not in ("HOSTNAME", "HOME")
    }
    for entry in container.get("env") or ():
        name = str(entry.get("name") or "")
        if entry.get("valueFrom"):
            value_or_none = _from_source(pod, container, entry, find, allocatable)
            if value_or_none is None:
                continue
            value = value_or_none
        else:
            value = expanded(str(entry.get("value") or ""), known)
        if not _usable(name, value):
            raise MissingReference(
                f"container {container.get('name')}: variable {name!r} cannot be set "
                "(a name is printable ASCII without '=', and no value can hold a NUL byte)"
            )
        known[name] = variables[name] = value
    variables["PATH"] = search_path(defaults.python, variables.get("PATH", ""))
    return ContainerEnvironment(variables, tuple(skipped))


def expanded_command(container: Object, variables: Mapping[str, str]) -> tuple[str, ...]:
    """``command`` and ``args`` with ``$(VAR)`` replaced.

    An image's own entry point is not known, as images are not pulled: without ``command`` the
    first of ``args`` is the program, and with neither the tuple is empty.
    """
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    return tuple(expanded(str(word), variables) for word in words)


def _all_of(container: Object, source: Object, find: Find) -> Mapping[str, str]:
    prefix = str(source.get("prefix") or "")
    for field, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
        reference = source.get(field)
        if not reference:
            continue
        name = str(reference.get("name") or "")
        obj = find(kind, name)
        if obj is None and reference.get("optional"):
            return {}
        if obj is None:
            raise MissingReference(
                f'container {container.get("name")}: {kind} "{name}", which envFrom wants, '
                "does not exist"
            )
        return {prefix + key: value for key, value in text_data(kind, obj).items()}
    return {}


def _from_source(
    pod: Object, container: Object, entry: Object, find: Find, allocatable: Mapping[str, str]
) -> str | None:
    """The value of ``valueFrom``; None where it is optional and not there."""
    source: Object = entry["valueFrom"]
    where = f"container {container.get('name')}: variable {entry.get('name')}"
    for field, kind in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
        reference = source.get(field)
        if not reference:
            continue
        name, key = str(reference.get("name") or ""), str(reference.get("key") or "")
        obj = find(kind, name)
        value = None if obj is None else text_data(kind, obj).get(key)
        if value is None and not reference.get("optional"):
            lacks = "does not exist" if obj is None else f'has no key "{key}"'
            raise MissingReference(f'{where}: {kind} "{name}" {lacks}')
        return value
    try:
        if reference := source.get("fieldRef"):
            return variable_field(pod, str(reference.get("fieldPath") or ""))
        if reference := source.get("resourceFieldRef"):
            return resource_field(pod, reference, allocatable, container)
    except MissingReference as error:
        raise MissingReference(f"{where}: {error}") from error
    raise MissingReference(
        f"{where}: valueFrom {', '.join(source) or '{}'} is not supported; there are "
        "configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef"
    )


def _usable(name: str, value: str) -> bool:
    return bool(_NAME.fullmatch(name)) and "\0" not in value
