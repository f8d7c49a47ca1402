"""What stands between a request and the store: defaults, and what refuses an object.

Jobs get what Volcano's webhooks do: ``api.defaults`` and ``core.check``. Other kinds get the
defaults that clients rely on and the checks of their fields.
"""

import re
from collections.abc import Mapping

import msgspec

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    QUEUE,
    SERVICE,
    Kind,
)
from vcjob.api.problems import Problem, errors, format_path, sentence
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.meta import OBJECT_META
from vcjob.api.schema.types import ANYTHING, Field, Record
from vcjob.api.types import Object
from vcjob.api.validation import FORMATS
from vcjob.core.check import Lookup, check, check_update
from vcjob.core.checks.queue_objects import check_queue, queue_removal_problems
from vcjob.local.apiserver.core_defaults import with_defaults
from vcjob.local.apiserver.core_rules import rule_problems
from vcjob.local.apiserver.fixed_fields import changed_fixed
from vcjob.local.apiserver.metadata import metadata_problems
from vcjob.local.apiserver.network_rules import new_service
from vcjob.local.apiserver.repeats import without_repeats
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.schemas.kinds import OF_KINDS
from vcjob.local.apiserver.status import Refused, invalid
from vcjob.local.apiserver.structural import completed, default_problems, faults, schema_problems
from vcjob.plugins.registry import Registry

_NAME_FORMATS = {NAMESPACE: "dns-1123-label", SERVICE: "dns-1035-label"}


class Admitted(msgspec.Struct, frozen=True):
    """An object as it may be stored, and what its author should know."""

    object: Object
    warnings: tuple[str, ...] = ()


def admit_new(
    resource: Resource, obj: Object, lookup: Lookup | None, plugins: Registry
) -> Admitted:
    """Complete and check an object that is to be created; raises Refused (422).

    ``lookup`` is what the cluster knows that a Job or a Queue may refer to (None: nothing asks).
    """
    kind = resource.stored
    metadata = obj["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or ""
    if problems := [*_name_problems(kind, metadata), *metadata_problems(metadata)]:
        raise invalid(resource.kind, name, problems)
    if kind == JOB:
        complete = apply_defaults(obj, requires=plugins.requires)
        return _judged(resource, name, complete, check(complete, lookup, plugins))
    complete = _completed(resource, obj)
    if kind == QUEUE:
        return _judged(resource, name, complete, check_queue(complete, _queues(lookup)))
    problems = _problems(resource, complete)
    if kind == SERVICE:
        problems += new_service(obj)
    return _judged(resource, name, complete, problems)


def admit_change(
    resource: Resource, new: Object, old: Object, lookup: Lookup | None, plugins: Registry
) -> Admitted:
    """Complete and check an object that is to be changed; raises Refused (422).

    ``lookup`` is as for ``admit_new``; of what may change only a Queue refers to something.
    """
    kind = resource.stored
    name = old["metadata"]["name"]
    if new["metadata"] != old["metadata"]:
        problems = check_fields(new["metadata"], OBJECT_META, ("metadata",))
        _judged(resource, name, new, [*problems, *metadata_problems(new["metadata"])])
    if kind == JOB:
        same = new.get("spec") == old.get("spec")
        complete = new if same else apply_defaults(new, requires=plugins.requires)
        return _judged(resource, name, complete, check_update(old, complete, plugins))
    complete = _completed(resource, new)
    problems = [*changed_fixed(kind, old, complete)]
    if resource.schema is not None:
        if _without_metadata(complete) != _without_metadata(old):
            problems += _problems(resource, complete)
    elif kind == QUEUE:
        if complete.get("spec") != old.get("spec"):
            problems += check_queue(complete, _queues(lookup), old)
    elif complete.get("spec") != old.get("spec") or "spec" not in complete:
        problems += _problems(resource, complete)
    return _judged(resource, name, complete, problems)


def check_queue_removal(name: str, queues: Mapping[str, Object]) -> None:
    """Refuse to delete queues that Jobs or other queues need; raises Refused (403)."""
    for problem in errors(queue_removal_problems(name, queues)):
        raise Refused(403, f'queues.{QUEUE.group} "{name}" is forbidden: {sentence(problem)}')


def _queues(lookup: Lookup | None) -> Mapping[str, Object] | None:
    return lookup.queues if lookup is not None else None


def _without_metadata(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion")}


def _completed(resource: Resource, obj: Object) -> Object:
    if resource.schema is not None:
        complete: Object = completed(obj, resource.schema)
        return complete
    if resource.stored == QUEUE:
        spec = obj.get("spec") or {}
        if isinstance(spec, dict):
            return {**obj, "spec": {"weight": 1, "reclaimable": True, **spec}}
    return with_defaults(resource.stored, obj)


def _judged(resource: Resource, name: str, obj: Object, problems: list[Problem]) -> Admitted:
    if refused := errors(problems):
        raise invalid(resource.kind, name, refused)
    told = tuple(f"{format_path(p.path)}: {p.message}" for p in problems if not _is_unknown(p))
    return Admitted(obj, told)


def _is_unknown(problem: Problem) -> bool:
    """Unknown fields are told by field validation, in its own words."""
    return problem.message.startswith("unknown field ")


def admit_status(resource: Resource, new: Object, old: Object) -> Object:
    """Check an object whose status is to be changed; raises Refused (422)."""
    if resource.schema is not None:
        schema = (resource.schema.get("properties") or {}).get("status") or {}
        status = completed(new.get("status"), schema)
        problems = [] if status is None else list(faults(status, schema, ("status",)))
        new = {**new, "status": status} if "status" in new else new
        _judged(resource, old["metadata"]["name"], new, problems)
    elif resource.stored in OF_KINDS and (status := new.get("status")) != old.get("status"):
        record = OF_KINDS[resource.stored].fields.get("status")
        kind = record.type if record else ANYTHING
        problems = check_fields(
            {"status": status}, Record("status", {"status": Field(kind)}, keeps_unknown=True)
        )
        if not isinstance(status, dict | None):
            problems = [Problem("status must be an object", ("status",))]
        _judged(resource, old["metadata"]["name"], new, problems)
    return new


def _problems(resource: Resource, obj: Object) -> list[Problem]:
    kind = resource.stored
    if kind not in OF_KINDS:
        problems = check_fields(obj["metadata"], OBJECT_META, ("metadata",))
        return [*problems, *faults(obj, resource.schema or {})]
    problems = field_problems(kind, obj)
    if kind == CUSTOM_RESOURCE_DEFINITION and not errors(problems):
        problems += _definition_problems(obj)
    return problems


def field_problems(kind: Kind, obj: Object) -> list[Problem]:
    """Every problem of an object of a built-in kind; with an error among them it is refused."""
    if kind == POD:
        obj = without_repeats(obj)
    problems = check_fields(obj, OF_KINDS[kind])
    return problems if errors(problems) else [*problems, *rule_problems(kind, obj)]


def problems_here(kind: Kind, obj: Object) -> list[Problem]:
    """Why an object that the controller is to make would not work on this machine.

    A claim needs neither size nor mode here, and Volcano admits Jobs without them.
    """
    if kind == PERSISTENT_VOLUME_CLAIM:
        return check_fields(obj, OF_KINDS[kind])
    return field_problems(kind, obj)


def _definition_problems(definition: Object) -> list[Problem]:
    spec = definition["spec"]
    problems = []
    expected = f"{spec['names']['plural']}.{spec['group']}"
    if definition["metadata"].get("name") != expected:
        problems.append(Problem(f"name must be {expected}", ("metadata", "name")))
    if sum(1 for version in spec["versions"] if version.get("storage")) != 1:
        problems.append(Problem("one version must be the stored one", ("spec", "versions")))
    for index, version in enumerate(spec["versions"]):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        path = ("spec", "versions", index, "schema", "openAPIV3Schema")
        found = list(schema_problems(schema, path))
        problems += found if errors(found) else [*found, *default_problems(schema, path)]
    return problems


def _name_problems(kind: Kind, metadata: Object) -> list[Problem]:
    name, start = metadata.get("name"), metadata.get("generateName")
    if not name and not start:
        return [Problem("name or generateName is required", ("metadata", "name"))]
    form = FORMATS[_NAME_FORMATS.get(kind, "dns-1123-subdomain")]
    tried = name or f"{re.sub(r'[-.]+$', '', str(start))}-x"
    if not isinstance(tried, str):
        return [Problem("name must be a text", ("metadata", "name"))]
    if wrong := form(tried):
        field = "name" if name else "generateName"
        return [Problem(f"{tried[:80]!r} is no name: it must {wrong}", ("metadata", field))]
    return []
