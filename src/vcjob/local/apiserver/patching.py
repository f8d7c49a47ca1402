"""Patches: what the body of a PATCH request does to an object, by its media type.

Source: Kubernetes documentation, "API Concepts" (patches).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from vcjob.api.schema.types import ANYTHING
from vcjob.api.types import Object
from vcjob.local.apiserver.bodies import Body, decode_json
from vcjob.local.apiserver.json_patch import apply_json_patch
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused
from vcjob.local.apiserver.strategic import strategic_merge
from vcjob.local.merge_patch import merge_patch

APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def change_of(resource: Resource, body: Body) -> Callable[[Object], Object]:
    """What a patch that is no apply does to an object.

    Raises Refused (415) for types that are not taken, and (400, 422) for a wrong patch, also when
    it is called.
    """
    strategic = () if resource.custom else (STRATEGIC_PATCH,)
    taken = (JSON_PATCH, MERGE_PATCH, *strategic)
    if body.type not in taken:
        raise Refused(
            415,
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join((*taken, APPLY_PATCH)),
        )
    patch = decode_json(body.bytes)
    if body.type == JSON_PATCH:
        return partial(_swapped, apply_json_patch, patch)
    if not isinstance(patch, dict):
        raise Refused(400, "the patch must be an object")
    if body.type == MERGE_PATCH:
        return partial(_swapped, merge_patch, patch)
    merge = partial(strategic_merge, kind=resource.record or ANYTHING)
    return partial(_swapped, merge, patch)


def _swapped(function: Callable[[Any, Any], Any], patch: Any, old: Object) -> Object:
    new = function(old, patch)
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        raise Refused(422, "the patch leaves no object with metadata")
    return new
