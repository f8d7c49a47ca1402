"""Events in both of their shapes. Source: Kubernetes API reference."""

from collections.abc import Mapping

from vcjob.api.kinds import EVENT, Kind
from vcjob.api.schema.types import (
    ANYTHING,
    INTEGER,
    TEXT,
    TIME,
    Field,
    Record,
    Type,
    field,
    record,
    required,
)
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS
from vcjob.local.apiserver.schemas.parts import OBJECT_REFERENCE, kept

_EVENT_FIELDS: dict[str, Type | Field] = {
    "action": TEXT,
    "reason": field(TEXT, "Why, in one word."),
    "related": OBJECT_REFERENCE,
    "reportingInstance": TEXT,
    "series": ANYTHING,
    "type": field(TEXT, "Normal or Warning."),
    "eventTime": TIME,
}

OF_KINDS: Mapping[Kind, Record] = {
    EVENT: kept(
        "Event",
        {
            **_EVENT_FIELDS,
            "count": field(INTEGER, "How often it happened."),
            "firstTimestamp": TIME,
            "lastTimestamp": TIME,
            "involvedObject": required(OBJECT_REFERENCE, "What it is about."),
            "message": field(TEXT, "What happened."),
            "reportingComponent": TEXT,
            "source": record("EventSource", {"component": TEXT, "host": TEXT}),
        },
        "Something that happened, for people to read.",
    ),
    EVENT_OF_EVENTS: kept(
        "Event",
        {
            **_EVENT_FIELDS,
            "note": field(TEXT, "What happened."),
            "regarding": field(OBJECT_REFERENCE, "What it is about."),
            "reportingController": TEXT,
            "deprecatedCount": INTEGER,
            "deprecatedFirstTimestamp": TIME,
            "deprecatedLastTimestamp": TIME,
            "deprecatedSource": ANYTHING,
        },
        "Something that happened, for people to read.",
    ),
}
"""Events."""
