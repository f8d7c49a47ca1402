"""Events have two shapes, core/v1 and events.k8s.io/v1, of one stored object (the core one).

Source: Kubernetes API reference, the fields of both and the names they have in the other.
"""

from vcjob.api.kinds import EVENT, Kind
from vcjob.api.types import Object

EVENT_OF_EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
"""An Event in its newer shape; stored as core ``EVENT``."""

_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
}
_BACK = {core: newer for newer, core in _NAMES.items()}


def to_core(event: Object) -> Object:
    """An Event of events.k8s.io as it is stored."""
    return {
        **{_NAMES.get(key, key): value for key, value in event.items()},
        "apiVersion": EVENT.api_version,
    }


def from_core(event: Object) -> Object:
    """A stored Event as events.k8s.io has it, where ``eventTime`` is never left out."""
    metadata = event["metadata"]
    time = event.get("eventTime") or event.get("firstTimestamp") or metadata["creationTimestamp"]
    return {
        **{_BACK.get(key, key): value for key, value in event.items()},
        "eventTime": time,
        "apiVersion": EVENT_OF_EVENTS.api_version,
    }


def core_field_selector(selector: str) -> str:
    """A field selector of events.k8s.io in the stored names."""
    return selector.replace("regarding.", "involvedObject.").replace(
        "reportingController", "reportingComponent"
    )
