"""Volumes of a pod template: one source each, and what each source needs.

Source: Kubernetes API reference of Volume and what its validation asks for.
"""

from collections.abc import Iterator
from typing import Any

from vcjob.api.problems import Path, Problem
from vcjob.api.schema.volumes import VOLUME, VOLUME_PROJECTION
from vcjob.api.types import Object
from vcjob.core.checks.common import exactly_one, needs_text
from vcjob.core.checks.env import FILE_FIELDS, check_field_ref, check_resource_ref

# The field that names the object which a source shows.
_NAMING_FIELDS = {"configMap": "name", "secret": "secretName"}


def check_pod_volumes(volumes: list[Object], path: Path) -> Iterator[Problem]:
    """All volumes of a pod. One without a source is an emptyDir, as in Kubernetes."""
    for index, volume in enumerate(volumes):
        where = (*path, index)
        sources = [name for name in VOLUME.fields if name != "name" and name in volume]
        if len(sources) > 1:
            yield Problem(
                f"a volume has one source, but this one has {' and '.join(sources)}",
                where,
                "make two volumes",
            )
        for name in sources:
            yield from _check_source(name, volume[name], (*where, name))


def _check_source(name: str, source: Any, path: Path) -> Iterator[Problem]:
    if name in _NAMING_FIELDS:
        yield from needs_text(source, _NAMING_FIELDS[name], path)
        yield from _check_distinct_paths(source.get("items", []), (*path, "items"))
    elif name == "downwardAPI":
        yield from _check_downward_items(source.get("items", []), (*path, "items"))
    elif name == "projected":
        for index, projection in enumerate(source.get("sources", [])):
            where = (*path, "sources", index)
            yield from exactly_one(projection, VOLUME_PROJECTION.fields, where)
            for kind in ("configMap", "secret"):
                if kind in projection:
                    yield from needs_text(projection[kind], "name", (*where, kind))
            if "downwardAPI" in projection:
                items = projection["downwardAPI"].get("items", [])
                yield from _check_downward_items(items, (*where, "downwardAPI", "items"))
    elif name == "ephemeral" and "volumeClaimTemplate" not in source:
        yield Problem("ephemeral lacks the volumeClaimTemplate", path)
    elif name == "nfs" and not source.get("path", "/").startswith("/"):
        yield Problem("the path of an NFS volume must begin with /", (*path, "path"))


def _check_distinct_paths(items: list[Object], path: Path) -> Iterator[Problem]:
    first_of: dict[str, int] = {}
    for index, item in enumerate(items):
        if file := item.get("path"):
            first = first_of.setdefault(file, index)
            if first != index:
                yield Problem(
                    f"items[{index}] writes the same file {file} as items[{first}]",
                    (*path, index, "path"),
                    "each must be different",
                )


def _check_downward_items(items: list[Object], path: Path) -> Iterator[Problem]:
    yield from _check_distinct_paths(items, path)
    for index, item in enumerate(items):
        where = (*path, index)
        yield from exactly_one(item, ("fieldRef", "resourceFieldRef"), where)
        if "fieldRef" in item:
            yield from check_field_ref(item["fieldRef"], FILE_FIELDS, (*where, "fieldRef"))
        if "resourceFieldRef" in item:
            reference = item["resourceFieldRef"]
            inner = (*where, "resourceFieldRef")
            yield from check_resource_ref(reference, inner)
            yield from needs_text(reference, "containerName", inner)
