"""A Job as the list of every object that the controller would send for it."""

import copy
from collections.abc import Iterator, Mapping

from vcjob.api.kinds import SECRET
from vcjob.api.names import derived_uid
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import Registry

_HIDDEN = "<hidden>"


def blueprint_to_render(
    job: Object, registry: Registry, uid: str = "", *, forwarding: bool = False
) -> Blueprint:
    """The blueprint of a Job that no server has stored; ``job`` has its defaults.

    Where the Job has no UID, ``uid`` or else one derived from namespace and name takes its place;
    a name that a server would complete (``generateName``) is completed in a way that is always the
    same. Raises MalformedObject.
    """
    Job.of(job)  # so that what is read from it below has the right types
    named = dict(job)
    metadata = dict(job.get("metadata") or {})
    namespace = metadata.get("namespace") or "default"
    if not metadata.get("name") and metadata.get("generateName"):
        prefix = metadata["generateName"]
        metadata["name"] = f"{prefix}{derived_uid(namespace, prefix)[:5]}"
    metadata["uid"] = (
        uid or metadata.get("uid") or derived_uid(namespace, metadata.get("name") or "")
    )
    named["metadata"] = metadata
    return Blueprint(Job.of(named), registry, forwarding=forwarding)


def rendered_objects(
    blueprint: Blueprint, priorities: Mapping[str, int] | None = None, *, show_secrets: bool = False
) -> Iterator[Object]:
    """Every object of a Job in the order in which they are sent: those of plugins, PodGroup, pods.

    Pods are made one by one, so that a job of any size needs no more memory than a small one.
    """
    for obj in blueprint.supporting_objects():
        yield obj if show_secrets or obj["kind"] != SECRET.kind else _without_values(obj)
    yield blueprint.pod_group(priorities)
    yield from blueprint.pods()


def _without_values(secret: Object) -> Object:
    hidden = copy.copy(secret)
    for field in ("data", "stringData"):
        if field in secret:
            hidden[field] = dict.fromkeys(secret[field], _HIDDEN)
    return hidden
