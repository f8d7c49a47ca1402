"""Where a pod may run: affinity, tolerations, spread over the topology.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.types import (
    LABEL,
    LABELS,
    LONG,
    POSITIVE,
    TEXT,
    Integer,
    ListOf,
    Text,
    choice,
    record,
    required,
)

NODE_SELECTOR_REQUIREMENT = record(
    "NodeSelectorRequirement",
    {
        "key": required(Text("qualified-name", min_length=1)),
        "operator": required(choice("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
        "values": ListOf(TEXT),
    },
)

NODE_SELECTOR_TERM = record(
    "NodeSelectorTerm",
    {
        "matchExpressions": ListOf(NODE_SELECTOR_REQUIREMENT),
        "matchFields": ListOf(NODE_SELECTOR_REQUIREMENT),
    },
)

PREFERRED_SCHEDULING_TERM = record(
    "PreferredSchedulingTerm",
    {
        "preference": required(NODE_SELECTOR_TERM),
        "weight": required(Integer(1, 100)),
    },
)

NODE_SELECTOR = record(
    "NodeSelector",
    {
        "nodeSelectorTerms": required(ListOf(NODE_SELECTOR_TERM, min_items=1)),
    },
)

NODE_AFFINITY = record(
    "NodeAffinity",
    {
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(PREFERRED_SCHEDULING_TERM),
        "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
    },
)

LABEL_SELECTOR_REQUIREMENT = record(
    "LabelSelectorRequirement",
    {
        "key": required(Text("qualified-name", min_length=1)),
        "operator": required(choice("In", "NotIn", "Exists", "DoesNotExist")),
        "values": ListOf(TEXT),
    },
)

LABEL_SELECTOR = record(
    "LabelSelector",
    {
        "matchExpressions": ListOf(LABEL_SELECTOR_REQUIREMENT),
        "matchLabels": LABELS,
    },
)

POD_AFFINITY_TERM = record(
    "PodAffinityTerm",
    {
        "labelSelector": LABEL_SELECTOR,
        "matchLabelKeys": ListOf(TEXT),
        "mismatchLabelKeys": ListOf(TEXT),
        "namespaceSelector": LABEL_SELECTOR,
        "namespaces": ListOf(LABEL),
        "topologyKey": required(Text("qualified-name", min_length=1)),
    },
)

WEIGHTED_POD_AFFINITY_TERM = record(
    "WeightedPodAffinityTerm",
    {
        "podAffinityTerm": required(POD_AFFINITY_TERM),
        "weight": required(Integer(1, 100)),
    },
)

POD_AFFINITY = record(
    "PodAffinity",
    {
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(WEIGHTED_POD_AFFINITY_TERM),
        "requiredDuringSchedulingIgnoredDuringExecution": ListOf(POD_AFFINITY_TERM),
    },
)

POD_ANTI_AFFINITY = record(
    "PodAntiAffinity",
    {
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(WEIGHTED_POD_AFFINITY_TERM),
        "requiredDuringSchedulingIgnoredDuringExecution": ListOf(POD_AFFINITY_TERM),
    },
)

AFFINITY = record(
    "Affinity",
    {
        "nodeAffinity": NODE_AFFINITY,
        "podAffinity": POD_AFFINITY,
        "podAntiAffinity": POD_ANTI_AFFINITY,
    },
)

TOLERATION = record(
    "Toleration",
    {
        "effect": choice("NoSchedule", "PreferNoSchedule", "NoExecute"),
        "key": Text("qualified-name"),
        "operator": choice("Exists", "Equal", "Lt", "Gt"),
        "tolerationSeconds": LONG,
        "value": TEXT,
    },
)

TOPOLOGY_SPREAD_CONSTRAINT = record(
    "TopologySpreadConstraint",
    {
        "labelSelector": LABEL_SELECTOR,
        "matchLabelKeys": ListOf(TEXT),
        "maxSkew": required(POSITIVE),
        "minDomains": POSITIVE,
        "nodeAffinityPolicy": choice("Honor", "Ignore"),
        "nodeTaintsPolicy": choice("Honor", "Ignore"),
        "topologyKey": required(Text("qualified-name", min_length=1)),
        "whenUnsatisfiable": required(choice("DoNotSchedule", "ScheduleAnyway")),
    },
)
