"""Events on Jobs, for users: one object for what is said again and again, with a count.

An Event's name is a hash of what it says, so that a controller that starts anew goes on counting.
Events are for people; a failure to write one is logged and changes nothing.
"""

import hashlib
import logging

from vcjob.api.kinds import EVENT, JOB, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, Cluster, ClusterError
from vcjob.core.draft import Told
from vcjob.core.times import timestamp

SOURCE = "vcjob"
_LONGEST_MESSAGE = 1024
_LONGEST_ABOUT = 253 - 17
"""What of a name has room in an Event's own, before a dot and the hash."""

_log = logging.getLogger(__name__)


async def record_event(
    cluster: Cluster, obj: Object, told: Told, now: float, kind: Kind = JOB
) -> None:
    """Make an Event on a Job (or an object of ``kind``), or count one that says the same.

    Events on what is in no namespace are in ``default``, as Kubernetes wants it.
    """
    metadata = obj["metadata"]
    text = "\0".join((metadata["uid"], told.type, told.reason, told.message))
    about = metadata["name"][:_LONGEST_ABOUT].rstrip("-.")
    name = f"{about}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    namespace = metadata.get("namespace") or "default"
    at = timestamp(now)
    event = {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            **({"namespace": namespace} if kind.namespaced else {}),
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "type": told.type,
        "reason": told.reason,
        "message": told.message[:_LONGEST_MESSAGE],
        "source": {"component": SOURCE},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        try:
            await cluster.create(EVENT, event)
        except AlreadyExists:
            known = await cluster.get(EVENT, namespace, name)
            more = {"count": known.get("count", 1) + 1, "lastTimestamp": at}
            await cluster.patch(EVENT, namespace, name, more)
    except ClusterError as error:
        _log.warning("no Event for %s %s/%s: %s", kind, namespace, metadata["name"], error)
