"""Bodies in protobuf, of the small kinds that kubectl and controllers in Go write that way.

``kubectl create configmap`` and its like send protobuf and try nothing else, so bodies of these
kinds are read. Answers are never protobuf: those clients take JSON. Read here rather than by a
library: that would need descriptors of all of Kubernetes' messages, for a table of field numbers.
Source: Kubernetes documentation, "API Concepts" (protobuf encoding idiosyncrasies), and the
``generated.proto`` files of the API, which give the numbers.
"""

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from vcjob.api.types import Object
from vcjob.local.apiserver.status import Refused

PROTOBUF = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_Scalar = Literal["text", "bytes", "number", "kept number", "flag", "time", "micro time", "port"]
"""A number that is 0 counts as not given, unless it is a kept one."""


class _Many(msgspec.Struct, frozen=True):
    """A list (or with ``is_map`` a map of texts) of ``item``."""

    item: Any
    is_map: bool = False


_Message = Mapping[int, tuple[str, Any]]

_TEXTS = _Many("text")
_TEXT_MAP = _Many("text", is_map=True)
_BYTES_MAP = _Many("bytes", is_map=True)

_OWNER: _Message = {
    1: ("kind", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("controller", "flag"),
    7: ("blockOwnerDeletion", "flag"),
}
_METADATA: _Message = {
    1: ("name", "text"),
    2: ("generateName", "text"),
    3: ("namespace", "text"),
    4: ("selfLink", "text"),
    5: ("uid", "text"),
    6: ("resourceVersion", "text"),
    7: ("generation", "number"),
    8: ("creationTimestamp", "time"),
    9: ("deletionTimestamp", "time"),
    10: ("deletionGracePeriodSeconds", "number"),
    11: ("labels", _TEXT_MAP),
    12: ("annotations", _TEXT_MAP),
    13: ("ownerReferences", _Many(_OWNER)),
    14: ("finalizers", _TEXTS),
}
_REFERENCE: _Message = {
    1: ("kind", "text"),
    2: ("namespace", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("resourceVersion", "text"),
    7: ("fieldPath", "text"),
}
_SERVICE_PORT: _Message = {
    1: ("name", "text"),
    2: ("protocol", "text"),
    3: ("port", "number"),
    4: ("targetPort", "port"),
    5: ("nodePort", "number"),
    6: ("appProtocol", "text"),
}
_SERVICE_SPEC: _Message = {
    1: ("ports", _Many(_SERVICE_PORT)),
    2: ("selector", _TEXT_MAP),
    3: ("clusterIP", "text"),
    4: ("type", "text"),
    5: ("externalIPs", _TEXTS),
    7: ("sessionAffinity", "text"),
    8: ("loadBalancerIP", "text"),
    9: ("loadBalancerSourceRanges", _TEXTS),
    10: ("externalName", "text"),
    11: ("externalTrafficPolicy", "text"),
    12: ("healthCheckNodePort", "number"),
    13: ("publishNotReadyAddresses", "flag"),
    17: ("ipFamilyPolicy", "text"),
    18: ("clusterIPs", _TEXTS),
    19: ("ipFamilies", _TEXTS),
    20: ("allocateLoadBalancerNodePorts", "flag"),
    21: ("loadBalancerClass", "text"),
    22: ("internalTrafficPolicy", "text"),
    23: ("trafficDistribution", "text"),
}
_LEASE_SPEC: _Message = {
    1: ("holderIdentity", "text"),
    2: ("leaseDurationSeconds", "number"),
    3: ("acquireTime", "micro time"),
    4: ("renewTime", "micro time"),
    5: ("leaseTransitions", "kept number"),
    6: ("strategy", "text"),
    7: ("preferredHolder", "text"),
}
_RESOURCE_ATTRIBUTES: _Message = {
    1: ("namespace", "text"),
    2: ("verb", "text"),
    3: ("group", "text"),
    4: ("version", "text"),
    5: ("resource", "text"),
    6: ("subresource", "text"),
    7: ("name", "text"),
}
_ACCESS_REVIEW_SPEC: _Message = {
    1: ("resourceAttributes", _RESOURCE_ATTRIBUTES),
    2: ("nonResourceAttributes", {1: ("path", "text"), 2: ("verb", "text")}),
}
_DELETE_OPTIONS: _Message = {
    1: ("gracePeriodSeconds", "kept number"),
    2: ("preconditions", {1: ("uid", "text"), 2: ("resourceVersion", "text")}),
    3: ("orphanDependents", "flag"),
    4: ("propagationPolicy", "text"),
    5: ("dryRun", _TEXTS),
    6: ("ignoreStoreReadErrorWithClusterBreakingPotential", "flag"),
}
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "ConfigMap"): {
        1: ("metadata", _METADATA),
        2: ("data", _TEXT_MAP),
        3: ("binaryData", _BYTES_MAP),
        4: ("immutable", "flag"),
    },
    ("v1", "Secret"): {
        1: ("metadata", _METADATA),
        2: ("data", _BYTES_MAP),
        3: ("type", "text"),
        4: ("stringData", _TEXT_MAP),
        5: ("immutable", "flag"),
    },
    ("v1", "Namespace"): {
        1: ("metadata", _METADATA),
        2: ("spec", {1: ("finalizers", _TEXTS)}),
        3: ("status", {1: ("phase", "text")}),
    },
    ("v1", "ServiceAccount"): {
        1: ("metadata", _METADATA),
        2: ("secrets", _Many(_REFERENCE)),
        3: ("imagePullSecrets", _Many({1: ("name", "text")})),
        4: ("automountServiceAccountToken", "flag"),
    },
    ("v1", "Service"): {
        1: ("metadata", _METADATA),
        2: ("spec", _SERVICE_SPEC),
        3: ("status", {1: ("loadBalancer", {})}),
    },
    ("v1", "Event"): {
        1: ("metadata", _METADATA),
        2: ("involvedObject", _REFERENCE),
        3: ("reason", "text"),
        4: ("message", "text"),
        5: ("source", {1: ("component", "text"), 2: ("host", "text")}),
        6: ("firstTimestamp", "time"),
        7: ("lastTimestamp", "time"),
        8: ("count", "number"),
        9: ("type", "text"),
        10: ("eventTime", "micro time"),
        11: ("series", {1: ("count", "number"), 2: ("lastObservedTime", "micro time")}),
        12: ("action", "text"),
        13: ("related", _REFERENCE),
        14: ("reportingComponent", "text"),
        15: ("reportingInstance", "text"),
    },
    ("coordination.k8s.io/v1", "Lease"): {1: ("metadata", _METADATA), 2: ("spec", _LEASE_SPEC)},
    ("scheduling.k8s.io/v1", "PriorityClass"): {
        1: ("metadata", _METADATA),
        2: ("value", "kept number"),
        3: ("globalDefault", "flag"),
        4: ("description", "text"),
        5: ("preemptionPolicy", "text"),
    },
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {
        1: ("metadata", _METADATA),
        2: ("status", {1: ("userInfo", {1: ("username", "text"), 2: ("uid", "text")})}),
    },
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", _ACCESS_REVIEW_SPEC),
        3: (
            "status",
            {
                1: ("allowed", "flag"),
                2: ("reason", "text"),
                3: ("evaluationError", "text"),
                4: ("denied", "flag"),
            },
        ),
    },
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", {1: ("namespace", "text")}),
        3: ("status", {3: ("incomplete", "flag"), 4: ("evaluationError", "text")}),
    },
    ("policy/v1", "Eviction"): {1: ("metadata", _METADATA), 2: ("deleteOptions", _DELETE_OPTIONS)},
}
_WRAPPED: _Message = {
    1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}),
    2: ("raw", "bytes"),
    3: ("contentEncoding", "text"),
    4: ("contentType", "text"),
}


def decode_protobuf(body: bytes) -> Object:
    """The object of a protobuf body; raises Refused (400, 415 where only JSON is taken)."""
    if not body.startswith(_MAGIC):
        raise Refused(400, "the body of the request is no protobuf as Kubernetes writes it")
    try:
        wrapped = _message(body[len(_MAGIC) :], _WRAPPED)
        names = wrapped.get("type", {})
        key = names.get("apiVersion", ""), names.get("kind", "")
        known = _DELETE_OPTIONS if key[1] == "DeleteOptions" else _KINDS.get(key)
        if known is None:
            raise _json_only(f"a body of the kind {' '.join(key)[:100]}")
        obj = _message(base64.b64decode(wrapped.get("raw", "")), known)
    except (ValueError, IndexError, OverflowError) as error:
        raise Refused(400, "the body of the request is no whole protobuf message") from error
    return {**obj, "apiVersion": key[0], "kind": key[1]}


def _json_only(what: str) -> Refused:
    return Refused(415, f"protobuf is not read here for {what}: send application/json")


def _message(data: bytes, known: _Message) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        if number not in known:
            raise _json_only(f"field {number} of a message with {known[min(known)][0]}"
                             if known else f"field {number}")  # fmt: skip
        name, kind = known[number]
        if isinstance(kind, _Many):
            if kind.is_map:
                pair = dict(_fields(_bytes(value)))
                key = _bytes(pair.get(1, b"")).decode()
                item = _value(pair.get(2, b""), kind.item)
                found.setdefault(name, {})[key] = "" if item is None else item
            else:
                item = _value(value, kind.item)
                found.setdefault(name, []).append("" if item is None else item)
        elif (item := _value(value, kind)) is not None:
            found[name] = item
    return found


def _value(value: int | bytes, kind: Any) -> Any:
    """A field's value as JSON has it; None if it is as good as not given."""
    match kind:
        case "text":
            return _bytes(value).decode() or None
        case "bytes":
            return base64.b64encode(_bytes(value)).decode() or None
        case "number" | "kept number":
            number = _signed(value)
            return number if number or kind == "kept number" else None
        case "flag":
            return _signed(value) != 0
        case "time" | "micro time":
            return _time(_bytes(value), kind == "micro time")
        case "port":
            parts = dict(_fields(_bytes(value)))
            text = _bytes(parts.get(3, b"")).decode()
            return (text if parts.get(1) else _signed(parts.get(2, 0))) or None
    return _message(_bytes(value), kind) or None


def _time(data: bytes, micro: bool) -> str | None:
    parts = dict(_fields(data))
    seconds = _signed(parts.get(1, 0))
    if not data or not 0 < seconds < 253402300800:
        return None
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{_signed(parts.get(2, 0)) // 1000:06}Z" if micro else f"{text}Z"


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and raw values of a message; raises ValueError, IndexError."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        value: int | bytes
        if wire == 0:
            value, place = _varint(data, place)
        elif wire in (1, 2, 5):
            size = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                size, place = _varint(data, place)
            if place + size > len(data):
                raise ValueError("a field is longer than its message")
            value, place = data[place : place + size], place + size
        else:
            raise ValueError("a field has no type")
        yield tag >> 3, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a field has another type")
    return value


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a field has another type")
    return value - (1 << 64) if value >> 63 else value
