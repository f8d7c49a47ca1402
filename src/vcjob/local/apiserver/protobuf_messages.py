"""The messages that are read of protobuf bodies: field numbers, names, and what the fields hold.

Source: the ``generated.proto`` files of the Kubernetes API, which give the numbers.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Scalar = Literal["text", "bytes", "number", "kept number", "flag", "time", "micro time", "port"]
"""A number that is 0 counts as not given, unless it is a kept one."""


class Many(msgspec.Struct, frozen=True):
    """A list (or with ``is_map`` a map of texts) of ``item``."""

    item: Any
    is_map: bool = False


Message = Mapping[int, tuple[str, Any]]
"""Names and types of fields, by their numbers."""

_TEXTS = Many("text")
_TEXT_MAP = Many("text", is_map=True)
_BYTES_MAP = Many("bytes", is_map=True)

_OWNER: Message = {
    1: ("kind", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("controller", "flag"),
    7: ("blockOwnerDeletion", "flag"),
}
_METADATA: Message = {
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
    13: ("ownerReferences", Many(_OWNER)),
    14: ("finalizers", _TEXTS),
}
_REFERENCE: Message = {
    1: ("kind", "text"),
    2: ("namespace", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("resourceVersion", "text"),
    7: ("fieldPath", "text"),
}
_SERVICE_PORT: Message = {
    1: ("name", "text"),
    2: ("protocol", "text"),
    3: ("port", "number"),
    4: ("targetPort", "port"),
    5: ("nodePort", "number"),
    6: ("appProtocol", "text"),
}
_SERVICE_SPEC: Message = {
    1: ("ports", Many(_SERVICE_PORT)),
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
_LEASE_SPEC: Message = {
    1: ("holderIdentity", "text"),
    2: ("leaseDurationSeconds", "number"),
    3: ("acquireTime", "micro time"),
    4: ("renewTime", "micro time"),
    5: ("leaseTransitions", "kept number"),
    6: ("strategy", "text"),
    7: ("preferredHolder", "text"),
}
_RESOURCE_ATTRIBUTES: Message = {
    1: ("namespace", "text"),
    2: ("verb", "text"),
    3: ("group", "text"),
    4: ("version", "text"),
    5: ("resource", "text"),
    6: ("subresource", "text"),
    7: ("name", "text"),
}
_ACCESS_REVIEW_SPEC: Message = {
    1: ("resourceAttributes", _RESOURCE_ATTRIBUTES),
    2: ("nonResourceAttributes", {1: ("path", "text"), 2: ("verb", "text")}),
}
DELETE_OPTIONS: Message = {
    1: ("gracePeriodSeconds", "kept number"),
    2: ("preconditions", {1: ("uid", "text"), 2: ("resourceVersion", "text")}),
    3: ("orphanDependents", "flag"),
    4: ("propagationPolicy", "text"),
    5: ("dryRun", _TEXTS),
    6: ("ignoreStoreReadErrorWithClusterBreakingPotential", "flag"),
}
"""How to delete; its apiVersion may be that of any group."""

KINDS: Mapping[tuple[str, str], Message] = {
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
        2: ("secrets", Many(_REFERENCE)),
        3: ("imagePullSecrets", Many({1: ("name", "text")})),
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
    ("policy/v1", "Eviction"): {1: ("metadata", _METADATA), 2: ("deleteOptions", DELETE_OPTIONS)},
}
"""The kinds that are read, by apiVersion and kind."""

WRAPPED: Message = {
    1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}),
    2: ("raw", "bytes"),
    3: ("contentEncoding", "text"),
    4: ("contentType", "text"),
}
"""What every body is wrapped in."""
