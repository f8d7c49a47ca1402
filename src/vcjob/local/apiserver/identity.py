"""What an object is, and what of it only the server sets, whatever a client sends.

Source: Kubernetes API conventions ("Metadata") and documentation, "API Concepts".
"""

from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.status import Refused

_SET_BY_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
                  "deletionGracePeriodSeconds", "selfLink", "managedFields")  # fmt: skip


def addressed(resource: Resource, place: Place, obj: Object) -> Object:
    """An object for a place, with what the path says of it filled in; raises Refused (400)."""
    kind = resource.kind
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = obj.get(field) or expected
        if found != expected:
            raise Refused(
                400,
                f"the {field} of the object ({str(found)[:100]}) is not that of the URL "
                f"({expected})",
            )
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Refused(400, "metadata must be an object")
    metadata = {key: value for key, value in metadata.items() if value is not None}
    namespace = metadata.pop("namespace", place.namespace) or place.namespace
    if kind.namespaced:
        if namespace != place.namespace:
            raise Refused(
                400,
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
            )
        metadata["namespace"] = namespace
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def fresh(obj: Object) -> Object:
    """An object that is to be created, without what only the server sets."""
    metadata = {key: v for key, v in obj["metadata"].items() if key not in _SET_BY_SERVER}
    return {**obj, "metadata": metadata}


def check_identity(resource: Resource, old: Object, new: Object) -> None:
    """Refuse a change of what an object is; raises Refused (400, 422) or Conflict."""
    metadata, before = new["metadata"], old["metadata"]
    for field in ("name", "namespace"):
        if metadata.get(field, before.get(field)) != before.get(field):
            raise Refused(400, f"metadata.{field} cannot be changed")
    for field in ("apiVersion", "kind"):
        if new.get(field, old[field]) != old[field]:
            raise Refused(400, f"{field} cannot be changed")
    if metadata.get("uid") and metadata["uid"] != before["uid"]:
        raise Conflict(
            f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: "
            f"{before['uid']}"
        )
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        raise Conflict(
            "the object has been modified; please apply your changes to the latest version and "
            "try again"
        )


def keeping(new: Object, old: Object) -> Object:
    """A new state with what the server keeps of the old one whatever it says."""
    metadata, before = new["metadata"], old["metadata"]
    kept = {key: before[key] for key in _SET_BY_SERVER if key in before and key != "managedFields"}
    kept |= {key: before[key] for key in ("name", "namespace") if key in before}
    managed = metadata.get("managedFields", before.get("managedFields"))
    if managed and managed != [{}]:
        kept["managedFields"] = managed
    mine = {k: v for k, v in metadata.items() if k not in _SET_BY_SERVER}
    return {**new, "kind": old["kind"], "metadata": {**mine, **kept}}
