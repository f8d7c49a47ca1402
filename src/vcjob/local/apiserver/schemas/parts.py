"""What several kinds have in common."""

from vcjob.api.schema.job import custom_object
from vcjob.api.schema.types import TEXT, TIME, Field, ListOf, Record, Type, record, required


def kept(name: str, fields: dict[str, Type | Field], doc: str) -> Record:
    """The record of a kind whose unknown fields draw warnings and stay."""
    whole = custom_object(name, fields, doc)
    return record(name, whole.fields, keeps_unknown=True, doc=doc)


OBJECT_REFERENCE = record(
    "ObjectReference",
    {
        "apiVersion": TEXT,
        "fieldPath": TEXT,
        "kind": TEXT,
        "name": TEXT,
        "namespace": TEXT,
        "resourceVersion": TEXT,
        "uid": TEXT,
    },
)
"""Which object is meant."""

CONDITIONS = ListOf(
    record(
        "Condition",
        {
            "type": required(TEXT, "What the condition is about."),
            "status": required(TEXT, "True, False or Unknown."),
            "reason": TEXT,
            "message": TEXT,
            "lastProbeTime": TIME,
            "lastHeartbeatTime": TIME,
            "lastTransitionTime": TIME,
        },
    ),
    keys=("type",),
)
"""What is so at the moment, and since when."""
