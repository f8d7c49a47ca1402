"""Objects of manifests to where they are to live: on the engine, or on a cluster."""

import re
from collections.abc import Iterator

import click
import msgspec

from vcjob.api.kinds import JOB, NAMESPACE, Kind
from vcjob.api.manifest import Document
from vcjob.api.problems import Path, Problem
from vcjob.api.types import Object
from vcjob.cli.manifests import Loaded
from vcjob.cli.target import Target
from vcjob.controller.cluster import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)


class Created(msgspec.Struct, frozen=True):
    """What was made: the Jobs as created, and the names of those that were there already.

    ``refusals`` is what the server did not take, by the manifest's lines.
    """

    jobs: tuple[Object, ...]
    present: tuple[str, ...]
    refusals: tuple[Problem, ...] = ()


async def create_objects(target: Target, loaded: Loaded) -> Created:
    """Create the objects of manifests, Jobs last; objects without a namespace go to the target's.

    What is there already stays as it is, and that is said; what is refused ends it. The engine of
    this machine gets the namespaces that it lacks, as a run has any. Raises ClusterError.
    """
    jobs: list[Object] = []
    present: list[str] = []
    objects = list(_in_order(loaded, target.namespace))
    if target.local:
        await _make_namespaces(target, [(kind, obj) for kind, obj, _ in objects])
    for kind, obj, document in objects:
        try:
            created = await target.cluster.create(kind, obj)
        except (Invalid, Forbidden, NotFound, Conflict) as error:
            refusal = document.place(_refusal(kind, obj, error))
            return Created(tuple(jobs), tuple(present), (refusal,))
        except AlreadyExists:
            name = obj["metadata"]["name"]
            said = await _how_it_is_there(target, kind, obj)
            click.echo(f"vcjob: {kind} {name} {said}", err=True)
            if kind == JOB:
                present.append(name)
            continue
        if kind == JOB:
            jobs.append(created)
    return Created(tuple(jobs), tuple(present))


async def _how_it_is_there(target: Target, kind: Kind, obj: Object) -> str:
    metadata = obj["metadata"]
    try:
        there = await target.cluster.get(kind, metadata.get("namespace", ""), metadata["name"])
    except ClusterError:  # gone since, or we may not read it; that it was there is certain
        there = {"metadata": {}}
    if there["metadata"].get("deletionTimestamp"):
        return "is being deleted: create it again when that is done"
    return "is there already, and stays as it is"


_FIELD = re.compile(r"\b(?:spec|metadata)(?:\.[A-Za-z0-9_-]+|\[\d+\])+")


def _refusal(kind: Kind, obj: Object, error: ClusterError) -> Problem:
    """What the server said, at the field that it names, else at the object's name."""
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName", "")
    field = _FIELD.search(str(error))
    path: Path = ("metadata", "name")
    if field:
        parts = re.findall(r"[A-Za-z0-9_-]+", field[0])
        path = tuple(int(part) if part.isdigit() else part for part in parts)
    return Problem(f"{kind} {name} was refused: {error}", path)


def _in_order(loaded: Loaded, namespace: str) -> Iterator[tuple[Kind, Object, Document]]:
    """What others may depend on comes first: objects of no namespace, then those beside Jobs."""
    others = [(other.kind, other.object, other.document) for other in loaded.others]
    others.sort(key=lambda one: one[0].namespaced)
    jobs = [(JOB, job.defaulted, job.document) for job in loaded.jobs]
    for kind, obj, document in (*others, *jobs):
        metadata = obj["metadata"]
        if kind.namespaced and not metadata.get("namespace"):
            metadata = {**metadata, "namespace": namespace}
        yield kind, {**obj, "metadata": metadata}, document


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
