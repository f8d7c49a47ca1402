"""Reading Jobs that got past admission though parts of them have impossible shapes.

Such a Job waits and says why; Commands for it work, and it disturbs no other.
"""

import msgspec

from vcjob.api.types import Job, MalformedObject, Object


def read_job(obj: Object) -> tuple[Job, str]:
    """The Job as far as it can be read, and what is wrong with it (empty if nothing).

    A status that cannot be read counts as none: it is written anew. A spec that cannot be read
    counts as empty, and is wrong.
    """
    metadata = obj["metadata"]
    spec, status = obj.get("spec"), obj.get("status")
    wrong = "" if isinstance(spec, dict) else "the Job has no spec"
    for shown, error_matters in (
        ({"spec": spec, "status": status}, False),
        ({"spec": spec}, False),
        ({"status": status}, True),
    ):
        try:
            return Job.of({"metadata": metadata, **_given(shown)}), wrong
        except MalformedObject as error:
            if not error_matters:
                wrong = f"the Job cannot be read: {error}"
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


def _given(parts: Object) -> Object:
    return {key: value for key, value in parts.items() if value is not None}
