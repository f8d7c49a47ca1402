"""What pods live in: Nodes, Namespaces, ServiceAccounts; Leases. Source: Kubernetes API docs."""

from collections.abc import Mapping

from vcjob.api.kinds import LEASE, NAMESPACE, NODE, SERVICE_ACCOUNT, Kind
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    COUNT,
    POSITIVE,
    RESOURCES,
    TEXT,
    TIME,
    ListOf,
    Record,
    record,
    required,
)
from vcjob.local.apiserver.schemas.parts import CONDITIONS, OBJECT_REFERENCE, kept

OF_KINDS: Mapping[Kind, Record] = {
    NODE: kept(
        "Node",
        {
            "spec": record(
                "NodeSpec",
                {
                    "podCIDR": TEXT,
                    "podCIDRs": ListOf(TEXT),
                    "providerID": TEXT,
                    "unschedulable": BOOLEAN,
                    "taints": ListOf(ANYTHING),
                },
            ),
            "status": record(
                "NodeStatus",
                {
                    "addresses": ListOf(
                        record("NodeAddress", {"type": required(TEXT), "address": TEXT}),
                        keys=("type",),
                    ),
                    "allocatable": RESOURCES,
                    "capacity": RESOURCES,
                    "conditions": CONDITIONS,
                    "nodeInfo": ANYTHING,
                },
            ),
        },
        "A machine that pods run on.",
    ),
    NAMESPACE: kept(
        "Namespace",
        {
            "spec": record("NamespaceSpec", {"finalizers": ListOf(TEXT)}),
            "status": record("NamespaceStatus", {"phase": TEXT, "conditions": CONDITIONS}),
        },
        "A room for names of objects.",
    ),
    SERVICE_ACCOUNT: kept(
        "ServiceAccount",
        {
            "automountServiceAccountToken": BOOLEAN,
            "imagePullSecrets": ListOf(
                record("LocalObjectReference", {"name": required(TEXT)}), keys=("name",)
            ),
            "secrets": ListOf(OBJECT_REFERENCE, keys=("name",)),
        },
        "Who pods are to the API.",
    ),
    LEASE: kept(
        "Lease",
        {
            "spec": record(
                "LeaseSpec",
                {
                    "acquireTime": TIME,
                    "holderIdentity": TEXT,
                    "leaseDurationSeconds": POSITIVE,
                    "leaseTransitions": COUNT,
                    "preferredHolder": TEXT,
                    "renewTime": TIME,
                    "strategy": TEXT,
                },
            )
        },
        "Who leads, and until when.",
    ),
}
"""What is there around pods."""
