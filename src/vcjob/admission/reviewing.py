"""An API server's question (AdmissionReview v1) to its answer: defaults as patches, and checks.

Pure: what the cluster knows comes in as an argument. Nothing has side effects, so a dry run is
answered like any other request. Source: Kubernetes documentation, "Dynamic Admission Control";
admission.md; deliberate differences: docs/compatibility.md.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from vcjob.admission.configurations import WEBHOOKS, Webhook
from vcjob.admission.responses import Verdict, respond
from vcjob.api.defaults import default_operations, queue_default_operations
from vcjob.api.errors import VcjobError
from vcjob.api.json_text import MOST_DEPTH, UnreadableJson, decode_json
from vcjob.api.kinds import PRIORITY_CLASS, QUEUE, Kind
from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS, WIDENING
from vcjob.api.problems import Problem, errors, printable
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Object
from vcjob.core.check import Lookup, check, check_update
from vcjob.core.checks.pod_groups import check_pod_group
from vcjob.core.checks.queue_objects import check_queue, queue_removal_problems
from vcjob.plugins.registry import Registry

API_VERSION = "admission.k8s.io/v1"
PATHS = tuple(webhook.path for webhook in WEBHOOKS)

_WEBHOOK_OF_PATH = {webhook.path: webhook for webhook in WEBHOOKS}
_REFERENCES = ((QUEUE, "queue"), (PRIORITY_CLASS, "priorityClassName"))


class NotAReview(VcjobError):
    """A request that asks nothing that can be answered; ``code`` is HTTP's word for it."""

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


class Rules(msgspec.Struct, frozen=True):
    """What the administrator decided: the plugins that there are, and which of the annotations
    that widen what the author of a Job may do have an effect.
    """

    plugins: Registry
    allowed_annotations: frozenset[str] = frozenset()


class Known(msgspec.Struct, frozen=True):
    """What is known of the cluster, and why something is not.

    ``missing`` has a clause for each kind that cannot be looked up, such as "the webhook may not
    list queues". What is not known refuses nothing.
    """

    lookup: Lookup
    missing: Mapping[Kind, str] = {}


class _GroupVersionResource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What an API server asks about. Who asks and whether it is a dry run makes no difference."""

    uid: str
    operation: str
    resource: _GroupVersionResource
    sub_resource: str = ""
    name: str = ""
    object: Any = None
    old_object: Any = None


def read_request(body: bytes) -> Request:
    """The question in the body of a request; raises NotAReview."""
    try:
        review = decode_json(body, MOST_DEPTH + 2)  # as deep as an object, in its envelope
    except UnreadableJson as error:
        raise NotAReview(f"the body of the request {error}") from error
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise NotAReview("the body of the request is no AdmissionReview")
    if (version := review.get("apiVersion")) != API_VERSION:
        raise NotAReview(
            f"AdmissionReviews of the version {printable(str(version)[:100])} are not understood, "
            f"only {API_VERSION}: set admissionReviewVersions of the webhook to v1"
        )
    try:
        request = msgspec.convert(review.get("request"), Request)
    except msgspec.ValidationError as error:
        raise NotAReview(f"the request of the AdmissionReview is not complete: {error}") from error
    if not request.uid:
        raise NotAReview("the request of the AdmissionReview has no uid")
    return request


def queue_asked_about(path: str, request: Request) -> str:
    """The Queue that a new Job or PodGroup is for, where that matters; empty elsewhere."""
    if path not in ("/jobs/validate", "/podgroups/validate") or request.operation != "CREATE":
        return ""
    spec = request.object.get("spec") if isinstance(request.object, dict) else None
    queue = spec.get("queue") if isinstance(spec, dict) else None
    return queue if isinstance(queue, str) and queue else DEFAULT_QUEUE


def answer(path: str, request: Request, rules: Rules, known: Known) -> Object:
    """The AdmissionReview that answers what was asked at ``path`` (one of ``PATHS``)."""
    webhook = _WEBHOOK_OF_PATH[path]
    verdict = _verdict(webhook, request, rules, known)
    response = respond(verdict, request.uid, webhook.kind, _name_of(request))
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _name_of(request: Request) -> str:
    """The object's name, or what its name is to be generated from.

    Who deletes a collection is asked for each object of it, without its name.
    """
    if request.name:
        return request.name
    told = request.object if request.operation != "DELETE" else request.old_object
    metadata = told.get("metadata") if isinstance(told, dict) else None
    named = metadata if isinstance(metadata, dict) else {}
    return str(named.get("name") or named.get("generateName") or "")


def _verdict(webhook: Webhook, request: Request, rules: Rules, known: Known) -> Verdict:
    if request.sub_resource:
        return Verdict()  # of status and scale nothing is asked; the object itself was admitted
    asked = (request.resource.group, request.resource.resource)
    if asked != (webhook.kind.group, webhook.kind.plural):
        return _misdirected(f"{'.'.join(reversed(asked))} is not answered at {webhook.path}")
    if request.resource.version != webhook.kind.version:
        version = request.resource.version
        return _misdirected(f"{webhook.kind.plural} of the version {version} are not understood")
    if request.operation not in webhook.operations:
        return _misdirected(f"{request.operation} is not answered at {webhook.path}")
    return _JUDGES[webhook.path](request, rules, known)


def _misdirected(why: str) -> Verdict:
    hint = "the webhook configuration asks for something that vcjob does not know"
    return Verdict([Problem(why[:200], hint=hint)], code=400)


def _complete_job(request: Request, rules: Rules, known: Known) -> Verdict:
    if not isinstance(request.object, dict):
        return Verdict()  # the validating webhook says what is wrong with it
    return Verdict(patch=default_operations(request.object, requires=rules.plugins.requires))


def _check_job(request: Request, rules: Rules, known: Known) -> Verdict:
    new, old = request.object, request.old_object
    problems = [*_annotation_problems(new, old, rules.allowed_annotations)]
    if request.operation == "CREATE":
        problems += check(new, known.lookup, rules.plugins)
        if not errors(problems):
            problems += _what_was_left_out(new, known)
    else:
        problems += check_update(old, new, rules.plugins)
    return Verdict(problems)


def _complete_queue(request: Request, rules: Rules, known: Known) -> Verdict:
    if not isinstance(request.object, dict):
        return Verdict()
    return Verdict(patch=queue_default_operations(request.object))


def _check_queue(request: Request, rules: Rules, known: Known) -> Verdict:
    queues = known.lookup.queues
    if request.operation == "DELETE":
        return Verdict(queue_removal_problems(_name_of(request), queues), code=403)
    if request.operation == "UPDATE" and _is_same_queue(request.old_object, request.object):
        return Verdict()
    return Verdict(check_queue(request.object, queues, request.old_object))


def _check_pod_group(request: Request, rules: Rules, known: Known) -> Verdict:
    if not isinstance(request.object, dict):
        return Verdict([Problem("a PodGroup must be an object")])
    return Verdict(check_pod_group(request.object, known.lookup.queues))


_JUDGES: dict[str, Callable[[Request, Rules, Known], Verdict]] = {
    "/jobs/mutate": _complete_job,
    "/jobs/validate": _check_job,
    "/queues/mutate": _complete_queue,
    "/queues/validate": _check_queue,
    "/podgroups/validate": _check_pod_group,
}


def _same_spec(old: Any, new: Any) -> bool:
    return (
        isinstance(old, dict) and isinstance(new, dict) and old.get("spec", {}) == new.get("spec")
    )


def _is_same_queue(old: Any, new: Any) -> bool:
    """Whether nothing changes of a Queue that is asked about; its status is written apart."""
    same_hierarchy = all(
        _annotations(old).get(name) == _annotations(new).get(name)
        for name in (HIERARCHY, HIERARCHY_WEIGHTS)
    )
    return same_hierarchy and _same_spec(old, new)


def _annotation_problems(new: Any, old: Any, allowed: Collection[str]) -> Iterator[Problem]:
    """A warning for each annotation that is new and has no effect for lack of permission."""
    before = _annotations(old)
    for key, value in _annotations(new).items():
        if key in WIDENING and key not in allowed and before.get(key) != value:
            yield Problem(
                f"{key} has no effect",
                ("metadata", "annotations", key),
                "the administrator of this cluster has not allowed it (--allow-annotation)",
                warning=True,
            )


def _annotations(obj: Any) -> Object:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _what_was_left_out(job: Object, known: Known) -> Iterator[Problem]:
    """A warning for each rule about the Job that could not be asked."""
    for kind, field in _REFERENCES:
        name = job["spec"].get(field)
        if name and (why := known.missing.get(kind)):
            yield Problem(
                f'whether there is a {kind.kind} "{name}" was not checked: {why}',
                ("spec", field),
                warning=True,
            )
