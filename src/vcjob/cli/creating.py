"""Objects of manifests to where they are to live: on the engine, or on a cluster."""

from collections.abc import Iterator

import click
import msgspec

from vcjob.api.kinds import JOB, NAMESPACE, Kind
from vcjob.api.types import Object
from vcjob.cli.manifests import Loaded
from vcjob.cli.target import Target
from vcjob.controller.cluster import AlreadyExists


class Created(msgspec.Struct, frozen=True):
    """What was made: the Jobs as created, and the names of those that were there already."""

    jobs: tuple[Object, ...]
    present: tuple[str, ...]


async def create_objects(target: Target, loaded: Loaded) -> Created:
    """Create the objects of manifests, Jobs last; objects without a namespace go to the target's.

    What is there already stays as it is, and that is said. The engine of this machine gets the
    namespaces that it lacks, as a run has any. Raises ClusterError.
    """
    jobs: list[Object] = []
    present: list[str] = []
    objects = list(_in_order(loaded, target.namespace))
    if target.local:
        await _make_namespaces(target, objects)
    for kind, obj in objects:
        try:
            created = await target.cluster.create(kind, obj)
        except AlreadyExists:
            name = obj["metadata"]["name"]
            click.echo(f"vcjob: {kind} {name} is there already, and stays as it is", err=True)
            if kind == JOB:
                present.append(name)
            continue
        if kind == JOB:
            jobs.append(created)
    return Created(tuple(jobs), tuple(present))


def _in_order(loaded: Loaded, namespace: str) -> Iterator[tuple[Kind, Object]]:
    """What others may depend on comes first: objects of no namespace, then those beside Jobs."""
    others = [(other.kind, other.object) for other in loaded.others]
    others.sort(key=lambda pair: pair[0].namespaced)
    for kind, obj in (*others, *((JOB, job.defaulted) for job in loaded.jobs)):
        metadata = obj["metadata"]
        if kind.namespaced and not metadata.get("namespace"):
            metadata = {**metadata, "namespace": namespace}
        yield kind, {**obj, "metadata": metadata}


async def _make_namespaces(target: Target, objects: list[tuple[Kind, Object]]) -> None:
    given = {obj["metadata"].get("name") for kind, obj in objects if kind == NAMESPACE}
    wanted = {obj["metadata"].get("namespace", "") for kind, obj in objects if kind.namespaced}
    there = {found["metadata"]["name"] for found in (await target.cluster.list(NAMESPACE)).items}
    for name in sorted(wanted - given - there):
        namespace = {
            "apiVersion": NAMESPACE.api_version,
            "kind": NAMESPACE.kind,
            "metadata": {"name": name},
        }
        try:
            await target.cluster.create(NAMESPACE, namespace)
        except AlreadyExists:
            continue  # somebody else has just made it
        click.echo(f"vcjob: namespace {name} is made", err=True)
