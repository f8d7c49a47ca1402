"""Questions as API servers put them to webhooks, and what they do with the answers."""

import base64
import copy
import json
from typing import Any

from vcjob.admission.reviewing import Known, Rules, answer, read_request
from vcjob.api.kinds import JOB, Kind
from vcjob.api.types import Object
from vcjob.core.check import Lookup
from vcjob.local.apiserver.json_patch import apply_json_patch
from vcjob.plugins.registry import installed_plugins

RULES = Rules(installed_plugins(third_party=False))
NOTHING_KNOWN = Known(Lookup())


def review(
    obj: Any, operation: str = "CREATE", *, old: Any = None, kind: Kind = JOB, **more: Any
) -> Object:
    """An AdmissionReview; ``more`` goes into its request."""
    group_version = {"group": kind.group, "version": kind.version}
    named = obj or old
    metadata = named.get("metadata") if isinstance(named, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {**group_version, "kind": kind.kind},
        "resource": {**group_version, "resource": kind.plural},
        "requestKind": {**group_version, "kind": kind.kind},
        "requestResource": {**group_version, "resource": kind.plural},
        "name": name if isinstance(name, str) else "",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "someone", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        **more,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def respond(
    path: str, question: Object, rules: Rules = RULES, known: Known = NOTHING_KNOWN
) -> Object:
    """The response at ``path``, as the API server gets it."""
    request = read_request(json.dumps(question).encode())
    reviewed = json.loads(json.dumps(answer(path, request, rules, known)))
    assert (reviewed["apiVersion"], reviewed["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Object = reviewed["response"]
    assert response["uid"] == question["request"]["uid"]
    assert all(len(warning) < 256 for warning in response.get("warnings", ()))
    return response


def patch_of(response: Object) -> list[Object]:
    """The JSON patch in a response; empty if there is none."""
    assert ("patch" in response) == ("patchType" in response)
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    operations: list[Object] = json.loads(base64.b64decode(response["patch"], validate=True))
    assert operations
    return operations


def patched(obj: Object, response: Object) -> Object:
    """The object as the API server goes on with it."""
    changed: Object = apply_json_patch(copy.deepcopy(obj), patch_of(response))
    return changed


def without_what_go_adds(value: Any) -> Any:
    """Go writes empty structs (metadata, resources) and texts, and leaves zero counts out."""
    if isinstance(value, dict):
        cleaned = {key: without_what_go_adds(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in ({}, 0, "")}
    if isinstance(value, list):
        return [without_what_go_adds(item) for item in value]
    return value
