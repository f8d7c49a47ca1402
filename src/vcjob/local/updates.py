"""What a request to change an object may change: pure rules of the Kubernetes API.

Source: Kubernetes API conventions, "Metadata" and "Spec and Status"; "Finalizers".
"""

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Conflict, Invalid

_FIXED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
)
"""Metadata that only the server writes."""

_APART = ("metadata", "status", "apiVersion", "kind")


def fresh_metadata(kind: Kind, metadata: Object) -> Object:
    """The metadata of a new object: what a client may say, and a namespace."""
    fixed = {field: value for field, value in metadata.items() if field not in _FIXED[2:]}
    if not kind.namespaced:
        fixed.pop("namespace", None)
    elif not fixed.get("namespace"):
        fixed["namespace"] = "default"
    return fixed


def check_current(kind: Kind, obj: Object, uid: str, resource_version: str) -> None:
    """Raise Conflict unless both, where given, are the object's."""
    metadata = obj["metadata"]
    if uid and uid != metadata["uid"]:
        raise Conflict(f"{kind} {metadata['name']} is another object of the same name")
    if resource_version and resource_version != metadata["resourceVersion"]:
        raise Conflict(
            f"{kind} {metadata['name']} has changed in the meantime: read it again and apply "
            "your changes to the latest version"
        )


def settled(kind: Kind, old: Object, new: Object, *, subresource: str, has_status: bool) -> Object:
    """What becomes of ``old`` when a client wants ``new``; ``old`` itself if it stays the same.

    ``subresource`` "status" changes only the status; without one, everything but the status where
    that is a subresource. Raises Invalid.
    """
    if new is old:
        return old
    if subresource == "status":
        wanted = {**old, "status": new["status"]} if "status" in new else _without_status(old)
        return old if wanted.get("status") is old.get("status") else wanted
    wanted = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"]}
    if has_status:
        wanted = _without_status(wanted)
        if "status" in old:
            wanted["status"] = old["status"]
    metadata = old["metadata"]
    if wanted.get("metadata") is not metadata:
        metadata = _metadata(kind, metadata, wanted.get("metadata") or {})
    if _differs(old, wanted):
        if "generation" in metadata or "spec" in wanted:
            metadata = {**metadata, "generation": metadata.get("generation", 0) + 1}
    elif metadata is old["metadata"] and wanted.get("status") is old.get("status"):
        return old
    wanted["metadata"] = metadata
    return wanted


def _metadata(kind: Kind, old: Object, new: Object) -> Object:
    """``old`` itself if a client's wish changes nothing."""
    metadata = {field: value for field, value in new.items() if field not in _FIXED}
    metadata.update({field: old[field] for field in _FIXED if field in old})
    if metadata == old:
        return old
    if "deletionTimestamp" in old:
        added = set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added:
            raise Invalid(
                f"{kind} {old['name']}: metadata.finalizers: no new finalizers can be added to an "
                f"object that is being deleted: {', '.join(sorted(added))}"
            )
    return metadata


def _differs(old: Object, new: Object) -> bool:
    """Whether anything but metadata and status differs; equal parts are the same object."""
    fields = [field for field in (*old, *new) if field not in _APART]
    return any(
        field not in old or field not in new or old[field] is not new[field] for field in fields
    )


def _without_status(obj: Object) -> Object:
    return {field: value for field, value in obj.items() if field != "status"}
