"""Reading Jobs that got past admission, or never met it.

One whose parts have impossible shapes waits and says why; Commands for it work, and it disturbs no
other. One that no webhook has completed is read as if one had.
"""

from typing import Any

import msgspec

from vcjob.api.defaults import Requires, apply_defaults, requires_nothing
from vcjob.api.problems import errors, format_path, sentence
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.job import JOB
from vcjob.api.types import Job, MalformedObject, Object
from vcjob.core.indices import LARGEST_INDEX


def read_job(obj: Object, requires: Requires = requires_nothing) -> tuple[Job, str]:
    """The Job as far as it can be read, and what is wrong with it (empty if nothing).

    ``requires`` tells which plugins a plugin needs beside it, for a Job that is to be completed.
    A status that cannot be read counts as none: it is written anew. A spec that cannot be read
    counts as empty, and is wrong. So are tasks that nobody could have pods of.
    """
    if _is_bare(obj.get("spec")):
        obj = apply_defaults(obj, requires=requires)
    metadata = obj["metadata"]
    spec, status = obj.get("spec"), obj.get("status")
    wrong = "" if isinstance(spec, dict) else "the Job has no spec"
    for shown, error_matters in (
        ({"spec": spec, "status": status}, False),
        ({"spec": spec}, False),
        ({"status": status}, True),
    ):
        try:
            return _possible(Job.of({"metadata": metadata, **_given(shown)}), wrong)
        except MalformedObject as error:
            if not error_matters:
                wrong = f"the Job cannot be read: {_what_is_wrong(spec) or error}"
    bare = {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
    return Job.of({"metadata": bare}), wrong


def read_status(obj: Object, before: Job) -> Job:
    """A Job of which all but the spec may have changed since it was read as ``before``."""
    try:
        job = Job.of({key: obj[key] for key in ("metadata", "status") if key in obj})
    except MalformedObject:
        return read_job(obj)[0]
    return msgspec.structs.replace(job, spec=before.spec)


def without_templates(job: Job) -> Job:
    """The Job with empty pod templates, for one whose templates have impossible shapes."""
    tasks = tuple(msgspec.structs.replace(task, template={}) for task in job.spec.tasks)
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=tasks))


def _is_bare(spec: object) -> bool:
    """Whether no webhook has completed a Job: then its tasks have no ``minAvailable``.

    Of a Job that was completed nothing is filled in again: an author may set its own to 0 later.
    """
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    return isinstance(tasks, list) and any(
        isinstance(task, dict) and task.get("minAvailable") is None for task in tasks
    )


def _possible(job: Job, wrong: str) -> tuple[Job, str]:
    """The Job with numbers of replicas that there can be, and what is wrong with its tasks."""
    seen: set[str] = set()
    for position, task in enumerate(job.spec.tasks):
        if not 0 <= task.replicas <= LARGEST_INDEX:
            problem = f"replicas is {task.replicas}: make it a number from 0 to {LARGEST_INDEX}"
        elif task.name in seen:
            problem = f'there is another task "{task.name}": give each a name of its own'
        else:
            problem = ""
        seen.add(task.name)
        if problem:
            wrong = wrong or f"spec.tasks[{position}]: {problem}"
    if not wrong:
        return job, wrong
    tasks = tuple(
        msgspec.structs.replace(task, replicas=min(max(task.replicas, 0), LARGEST_INDEX))
        for task in job.spec.tasks
    )
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=tasks)), wrong


def _what_is_wrong(spec: Any) -> str:
    """The first field of a spec that admission would have refused, in the same words."""
    for problem in errors(check_fields({"spec": spec}, JOB)):
        if problem.path[:1] == ("spec",):
            return f"{format_path(problem.path)}: {sentence(problem)}"
    return ""


def _given(parts: Object) -> Object:
    return {key: value for key, value in parts.items() if value is not None}
