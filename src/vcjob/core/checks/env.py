"""Environment of a container: where values come from.

Source: Kubernetes API reference of EnvVar and EnvFromSource; documentation, "Downward API".
"""

import re
from collections.abc import Iterator, Mapping

from vcjob.api.problems import Path, Problem
from vcjob.api.schema.containers import ENV_VAR_SOURCE
from vcjob.api.suggestions import suggest
from vcjob.api.types import Object
from vcjob.core.checks.common import exactly_one, needs_text

# What fieldRef can give a variable, and a file of a downwardAPI volume.
VARIABLE_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
FILE_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid"),
    *("metadata.labels", "metadata.annotations"),
)
RESOURCE_FIELDS = (
    *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
    *("requests.cpu", "requests.memory", "requests.ephemeral-storage"),
)
_ONE_OF_MAP = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def check_env(container: Object, path: Path, volumes: Mapping[str, Object]) -> Iterator[Problem]:
    """``env`` and ``envFrom`` of one container."""
    for index, variable in enumerate(container.get("env", [])):
        source = variable.get("valueFrom")
        if source is not None:
            where = (*path, "env", index, "valueFrom")
            if variable.get("value"):
                yield Problem("value and valueFrom exclude each other", where)
            yield from _check_source(source, where, volumes)
    for index, source in enumerate(container.get("envFrom", [])):
        where = (*path, "envFrom", index)
        yield from exactly_one(source, ("configMapRef", "secretRef"), where)
        for name in ("configMapRef", "secretRef"):
            if name in source:
                yield from needs_text(source[name], "name", (*where, name))


def _check_source(source: Object, path: Path, volumes: Mapping[str, Object]) -> Iterator[Problem]:
    yield from exactly_one(source, ENV_VAR_SOURCE.fields, path)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from needs_text(source[name], "name", (*path, name))
    if "fieldRef" in source:
        yield from check_field_ref(source["fieldRef"], VARIABLE_FIELDS, (*path, "fieldRef"))
    if "resourceFieldRef" in source:
        where = (*path, "resourceFieldRef")
        yield from check_resource_ref(source["resourceFieldRef"], where)
    if "fileKeyRef" in source:
        volume = source["fileKeyRef"].get("volumeName")
        if volume and volume not in volumes:
            yield Problem(
                f'the pod has no volume "{volume}"',
                (*path, "fileKeyRef", "volumeName"),
                suggest(volume, volumes),
            )


def check_field_ref(reference: Object, known: tuple[str, ...], path: Path) -> Iterator[Problem]:
    """A field of the pod: one of ``known``, or one label or annotation."""
    field = reference.get("fieldPath", "")
    if field and field not in known and not _ONE_OF_MAP.fullmatch(field):
        yield Problem(
            f'no value can be taken from the pod\'s field "{field}"',
            (*path, "fieldPath"),
            suggest(field, (*known, "metadata.labels['KEY']", "metadata.annotations['KEY']")),
        )


def check_resource_ref(reference: Object, path: Path) -> Iterator[Problem]:
    """A request or limit of a container."""
    resource = reference.get("resource", "")
    is_hugepages = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if resource and resource not in RESOURCE_FIELDS and not is_hugepages:
        yield Problem(
            f'"{resource}" is no request or limit that can be passed on',
            (*path, "resource"),
            suggest(resource, RESOURCE_FIELDS),
        )
