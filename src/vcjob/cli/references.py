"""What the Jobs of a run name and no file brings along: left by an earlier run, or missing."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from vcjob.api.kinds import PERSISTENT_VOLUME_CLAIM, PRIORITY_CLASS, QUEUE
from vcjob.api.problems import Path as ProblemPath
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.cli.manifests import Loaded, LoadedJob
from vcjob.core.checks.queue_objects import ALWAYS_THERE
from vcjob.core.checks.queues import check_references
from vcjob.core.checks.subject import Lookup, subject_of
from vcjob.plugins.registry import Registry

_BRING = "a run has only what its files bring along: name a file with this {kind} too"


def missing_references(loaded: Loaded, registry: Registry, claims: Path) -> Iterator[Problem]:
    """What keeps a Job waiting for ever, since nobody can create anything during a run.

    ``claims`` is where the content of claims is kept across runs.
    """
    queues: dict[str, Object] = {name: {} for name in ALWAYS_THERE}
    classes = set()
    for other in loaded.others:
        name = other.object["metadata"].get("name", "")
        if other.kind == QUEUE:
            queues[name] = other.object
        elif other.kind == PRIORITY_CLASS:
            classes.add(name)
    lookup = Lookup(queues, frozenset(classes))
    for job in loaded.jobs:
        for problem in check_references(subject_of(job.defaulted, [], registry.requires), lookup):
            hint = problem.hint
            if problem.path[-1] != "queue":
                hint = _BRING.format(kind=PRIORITY_CLASS.kind)
            elif Job.of(job.defaulted).spec.queue not in queues:
                hint = f"{_BRING.format(kind=QUEUE.kind)}; {hint}"
            yield job.document.place(msgspec.structs.replace(problem, hint=hint, warning=False))
    for named in _claims(loaded.jobs):
        if named.key not in _brought(loaded) and not named.is_kept(claims):
            message = f'the claim "{named.name}" is in no file, and no earlier run has left one'
            hint = "add the PersistentVolumeClaim to the files, or describe it under volumeClaim"
            yield named.job.document.place(Problem(message, named.path, hint))


def left_claims(loaded: Loaded, claims: Path) -> list[Object]:
    """Objects of the claims that Jobs name and an earlier run has left, once each."""
    left = {named.key for named in _claims(loaded.jobs) if named.is_kept(claims)}
    return [
        {
            "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
            "kind": PERSISTENT_VOLUME_CLAIM.kind,
            "metadata": {"namespace": namespace, "name": name},
            "spec": {},
        }
        for namespace, name in sorted(left - _brought(loaded))
    ]


class _Named(msgspec.Struct, frozen=True):
    """A claim that a Job wants others to have made."""

    job: LoadedJob
    path: ProblemPath
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    def is_kept(self, claims: Path) -> bool:
        return (claims / self.namespace / self.name).is_dir()


def _claims(jobs: Iterable[LoadedJob]) -> Iterator[_Named]:
    for job in jobs:
        namespace = job.defaulted["metadata"].get("namespace") or "default"
        for index, volume in enumerate(job.defaulted["spec"].get("volumes") or ()):
            if (name := volume.get("volumeClaimName")) and volume.get("volumeClaim") is None:
                path = ("spec", "volumes", index, "volumeClaimName")
                yield _Named(job, path, namespace, name)


def _brought(loaded: Loaded) -> set[tuple[str, str]]:
    """Namespace and name of each claim in the files."""
    metadata = [
        other.object["metadata"] for other in loaded.others if other.kind == PERSISTENT_VOLUME_CLAIM
    ]
    return {(one.get("namespace") or "default", one.get("name", "")) for one in metadata}
