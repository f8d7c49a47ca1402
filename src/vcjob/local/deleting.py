"""How objects go, and what goes with them.

Source of the rules: Kubernetes documentation, "Garbage Collection", "Finalizers" and "Pod
Lifecycle" (termination of pods).
"""

from vcjob.api.kinds import POD, Kind
from vcjob.api.types import Key, Object
from vcjob.core.times import timestamp
from vcjob.local.objects import Objects, Place, owner_uids

DEFAULT_GRACE_SECONDS = 30
_FOREGROUND = "foregroundDeletion"


def delete(
    objects: Objects, place: Place, now: float, *, grace: int | None, propagation: str
) -> Object:
    """Ask for an object's deletion; returns it as it was left.

    ``grace`` in seconds is for pods; ``propagation`` is Background, Foreground or Orphan, or ""
    where it is not said: Background, unless a deletion in the foreground has begun, which the
    other words end.
    """
    if place[0] == POD:
        return _delete_pod(objects, place[1], now, grace)
    uid = objects.at(place)["metadata"]["uid"]
    if propagation == "Orphan":
        _orphan(objects, uid)
    elif propagation == "Foreground" and _blocking(objects, uid):
        return _delete_dependents_first(objects, place, now)
    if propagation in ("Orphan", "Background"):
        _wait_no_longer(objects, place)
    obj = objects.at(place)
    if obj["metadata"].get("finalizers"):
        if "deletionTimestamp" in obj["metadata"]:
            return obj
        return _mark(objects, place, {"deletionTimestamp": timestamp(now)})
    return remove(objects, place, now)


def remove(objects: Objects, place: Place, now: float) -> Object:
    """Take an object away, then everything that belonged to it alone."""
    last = objects.remove(*place)
    uid = last["metadata"]["uid"]
    for dependent in list(objects.dependents(uid)):
        collect(objects, dependent, now)
    for owner in owner_uids(last):
        _finish_foreground(objects, owner, now)
    return last


def collect(objects: Objects, place: Place, now: float) -> None:
    """Delete an object if it had owners and none of them is there any more."""
    obj = objects.find(*place)
    owners = owner_uids(obj) if obj else []
    if owners and not any(owner in objects.uids for owner in owners):
        delete(objects, place, now, grace=None, propagation="Background")


def released(obj: Object, kind: Kind) -> bool:
    """Whether an object whose deletion was asked for has nothing left that keeps it."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    # A pod stays until its node says that it has ended: by deleting it with no grace.
    return kind != POD or metadata.get("deletionGracePeriodSeconds") == 0


def _delete_pod(objects: Objects, key: Key, now: float, grace: int | None) -> Object:
    place = (POD, key)
    pod = objects.at(place)
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not spec.get("nodeName") or ended or grace < 0:
        grace = 0
    if grace == 0 and not metadata.get("finalizers"):
        return remove(objects, place, now)
    given = metadata.get("deletionGracePeriodSeconds")
    if given is not None and given <= grace:
        return pod
    marks = {
        "deletionTimestamp": timestamp(now + grace),
        "deletionGracePeriodSeconds": grace,
    }
    return _mark(objects, place, marks)


def _delete_dependents_first(objects: Objects, place: Place, now: float) -> Object:
    obj = objects.at(place)
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers") or ()
    if _FOREGROUND in finalizers:
        return obj
    stamp = metadata.get("deletionTimestamp") or timestamp(now)
    marks = {"deletionTimestamp": stamp, "finalizers": [*finalizers, _FOREGROUND]}
    marked = _mark(objects, place, marks)
    for dependent in list(objects.dependents(metadata["uid"])):
        owned = objects.find(*dependent)
        if owned is None:  # went with another one
            continue
        if all(_leaves_in_foreground(objects, owner) for owner in owner_uids(owned)):
            delete(objects, dependent, now, grace=None, propagation="Foreground")
        else:
            _disown(objects, dependent, metadata["uid"])
    _finish_foreground(objects, metadata["uid"], now)
    return objects.find(*place) or marked


def _leaves_in_foreground(objects: Objects, owner: str) -> bool:
    place = objects.uids.get(owner)
    if place is None:
        return True
    return _FOREGROUND in (objects.at(place)["metadata"].get("finalizers") or ())


def _wait_no_longer(objects: Objects, place: Place) -> None:
    """Take an object out of a deletion in the foreground: its dependents no longer keep it."""
    finalizers = objects.at(place)["metadata"].get("finalizers") or ()
    if _FOREGROUND in finalizers:
        rest = [item for item in finalizers if item != _FOREGROUND]
        _mark(objects, place, {"finalizers": rest})


def changed_owners(objects: Objects, place: Place, before: list[str], now: float) -> None:
    """Act on a change of an object's owners; ``before`` are the UIDs of those it had."""
    collect(objects, place, now)
    for owner in before:
        _finish_foreground(objects, owner, now)


def _finish_foreground(objects: Objects, owner: str, now: float) -> None:
    """Take away an object that waited for its dependents, once the last one is gone."""
    place = objects.uids.get(owner)
    finalizers = objects.at(place)["metadata"].get("finalizers") or () if place else ()
    if place is None or _FOREGROUND not in finalizers or _blocking(objects, owner):
        return
    _wait_no_longer(objects, place)
    if released(objects.at(place), place[0]):
        remove(objects, place, now)


def _blocking(objects: Objects, uid: str) -> bool:
    """Whether some dependent has to go before this object may."""
    return any(
        owner.get("uid") == uid and owner.get("blockOwnerDeletion")
        for dependent in objects.dependents(uid)
        for owner in objects.at(dependent)["metadata"].get("ownerReferences") or ()
    )


def _orphan(objects: Objects, uid: str) -> None:
    for dependent in list(objects.dependents(uid)):
        _disown(objects, dependent, uid)


def _disown(objects: Objects, place: Place, uid: str) -> None:
    references = objects.at(place)["metadata"].get("ownerReferences") or ()
    kept = [owner for owner in references if owner.get("uid") != uid]
    _mark(objects, place, {"ownerReferences": kept})


def _mark(objects: Objects, place: Place, marks: Object) -> Object:
    obj = objects.at(place)
    return objects.put(*place, {**obj, "metadata": {**obj["metadata"], **marks}})
