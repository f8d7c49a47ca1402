"""Objects that a manifest may bring along for its Jobs, as far as they can be wrong by themselves.

Source: Kubernetes API reference. What is below ``spec`` of a Service or NetworkPolicy is kept as it
is; whoever acts on it checks it.
"""

from collections.abc import Mapping

from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.schema import job, objects
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    TEXT,
    Field,
    MapOf,
    Record,
    Type,
    choice,
    record,
    required,
)
from vcjob.api.schema.volumes import PERSISTENT_VOLUME_CLAIM_SPEC

_DATA = MapOf(TEXT, "config-map-key")


def _core(name: str, fields: dict[str, Type | Field]) -> Record:
    whole = job.custom_object(name, fields, "")
    return record(name, whole.fields, keeps_unknown=True)


RECORDS: Mapping[Kind, Record] = {
    JOB: job.JOB,
    QUEUE: objects.QUEUE,
    COMMAND: objects.COMMAND,
    CONFIG_MAP: _core("ConfigMap", {"data": _DATA, "binaryData": _DATA, "immutable": BOOLEAN}),
    SECRET: _core(
        "Secret", {"data": _DATA, "stringData": _DATA, "type": TEXT, "immutable": BOOLEAN}
    ),
    PERSISTENT_VOLUME_CLAIM: _core(
        "PersistentVolumeClaim",
        {"spec": required(PERSISTENT_VOLUME_CLAIM_SPEC), "status": ANYTHING},
    ),
    PRIORITY_CLASS: _core(
        "PriorityClass",
        {
            "value": required(INTEGER),
            "globalDefault": BOOLEAN,
            "description": TEXT,
            "preemptionPolicy": choice("PreemptLowerPriority", "Never"),
        },
    ),
    SERVICE: _core("Service", {"spec": ANYTHING, "status": ANYTHING}),
    NETWORK_POLICY: _core("NetworkPolicy", {"spec": ANYTHING}),
    NAMESPACE: _core("Namespace", {"spec": ANYTHING, "status": ANYTHING}),
}
"""What a manifest may hold."""
