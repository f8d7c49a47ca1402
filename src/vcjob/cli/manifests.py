"""Manifest files to checked Jobs: what every command that takes FILE... begins with."""

import sys
from collections.abc import Iterator, Sequence

import click
import msgspec

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import JOB, Kind
from vcjob.api.manifest import MOST_BYTES, Document, parse
from vcjob.api.problems import Problem, errors
from vcjob.api.types import Object
from vcjob.core.check import check
from vcjob.core.checks.objects import check_kind, check_object, kind_of
from vcjob.core.trial import try_out
from vcjob.plugins.registry import Registry, installed_plugins

STANDARD_INPUT = "-"


class LoadedJob(msgspec.Struct, frozen=True):
    """A Job of a manifest: as it is written, and with defaults filled in.

    It may have no name but ``metadata.generateName``; whoever creates it completes that.
    """

    document: Document
    written: Object
    defaulted: Object
    problems: tuple[Problem, ...]

    @property
    def refused(self) -> bool:
        """Whether an error keeps it from being created."""
        return bool(errors(list(self.problems)))


class LoadedObject(msgspec.Struct, frozen=True):
    """Another object that the manifest brings along."""

    document: Document
    kind: Kind
    object: Object


class Loaded(msgspec.Struct, frozen=True):
    """All objects of the files. ``problems`` are those of Jobs too, in the order of the text."""

    files: tuple[str, ...]
    jobs: tuple[LoadedJob, ...]
    others: tuple[LoadedObject, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[Problem]:
        """Only the problems that refuse."""
        return errors(list(self.problems))


def load(files: Sequence[str], *, together: bool = True) -> Loaded:
    """Read and check the manifests ``files`` (``-`` is standard input).

    ``together`` says that their objects are to exist at the same time, so that no two of one kind
    may have the same name; without it that is asked within each file only. Raises click.UsageError
    if a file cannot be read.
    """
    jobs: list[LoadedJob] = []
    others: list[LoadedObject] = []
    problems: list[Problem] = []
    plugins = installed_plugins(third_party=True)
    if files.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input (-) can be read once only")
    for file in files:
        found: list[Problem] = []
        name = "<stdin>" if file == STANDARD_INPUT else file
        manifest = parse(_read(file), name)
        found += manifest.problems
        for document in manifest.documents:
            kind = kind_of(document.object)
            if kind == JOB:
                job = load_job(document, document.object, plugins)
                jobs.append(job)
                found += job.problems
            elif kind is None:
                found += map(document.place, check_kind(document.object))
            else:
                others.append(LoadedObject(document, kind, document.object))
                found += map(document.place, check_object(document.object, kind))
        problems += sorted(found, key=lambda problem: (problem.line, problem.column))
    problems += _duplicates(jobs, others, together)
    if not jobs and not errors(problems):
        problems.append(
            Problem("there is no Job in the files", file=files[0], warning=True, line=1, column=1)
        )
    return Loaded(tuple(files), tuple(jobs), tuple(others), tuple(problems))


def _read(file: str) -> bytes:
    """At most one byte more than a manifest may have, so that no file is too big to be read."""
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with open(file, "rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except IsADirectoryError as error:
        raise click.UsageError(
            f"{file} is a directory; name the manifests in it: {file.rstrip('/')}/*.yaml"
        ) from error
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise click.UsageError(
            f"{file} is an address, not a file; fetch it: curl -fsSL {file} | vcjob … -"
            if "://" in file
            else f"cannot read {file}: {getattr(error, 'strerror', None) or error}"
        ) from error


def load_job(document: Document, job: Object, plugins: Registry) -> LoadedJob:
    """Check ``job``: the object of ``document``, or what became of it (scaling)."""
    metadata = job.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    defaulted = apply_defaults(job, requires=plugins.requires)
    problems = check(job, plugins=plugins)
    if not errors(problems):
        problems += try_out(defaulted, plugins)
    placed = [
        msgspec.structs.replace(document.place(problem), job=name if isinstance(name, str) else "")
        for problem in problems
    ]
    return LoadedJob(document, job, defaulted, tuple(placed))


def with_jobs(loaded: Loaded, jobs: Sequence[LoadedJob]) -> Loaded:
    """The same manifests with other Jobs, in the same order, and their problems."""
    old = {id(problem) for job in loaded.jobs for problem in job.problems}
    problems = [problem for problem in loaded.problems if id(problem) not in old]
    problems += [problem for job in jobs for problem in job.problems]
    files = list(dict.fromkeys(problem.file for problem in loaded.problems))
    files += [job.document.file for job in jobs if job.document.file not in files]
    problems.sort(key=lambda one: (files.index(one.file), one.line, one.column))
    return msgspec.structs.replace(loaded, jobs=tuple(jobs), problems=tuple(problems))


def _duplicates(
    jobs: Sequence[LoadedJob], others: Sequence[LoadedObject], together: bool
) -> Iterator[Problem]:
    """Objects of one kind with the same name: the later would replace the earlier."""
    first_of: dict[tuple[str, ...], Document] = {}
    documents = [(JOB, job.document) for job in jobs]
    documents += [(other.kind, other.document) for other in others]
    for kind, document in documents:
        metadata = document.object.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(name, str):
            continue
        namespace = metadata.get("namespace") or "default"
        scope = "" if together else document.file
        key = (scope, str(kind), str(namespace) if kind.namespaced else "", name)
        first = first_of.setdefault(key, document)
        if first is not document:
            line, _ = first.locate(("metadata", "name"))
            yield document.place(
                Problem(
                    f"{kind} {name} is given twice; first in {first.file}:{line}",
                    ("metadata", "name"),
                    "give each its own name",
                )
            )
