"""Services, EndpointSlices and NetworkPolicies. Source: Kubernetes API reference."""

from collections.abc import Mapping

from vcjob.api.kinds import ENDPOINT_SLICE, NETWORK_POLICY, SERVICE, Kind
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    INTEGER_OR_TEXT,
    TEXT,
    ListOf,
    MapOf,
    Record,
    field,
    record,
    required,
)
from vcjob.local.apiserver.schemas.parts import kept

_SERVICE_PORT = record(
    "ServicePort",
    {
        "appProtocol": TEXT,
        "name": TEXT,
        "nodePort": INTEGER,
        "port": required(INTEGER, "Port of the Service."),
        "protocol": field(TEXT, "TCP, UDP or SCTP.", default="TCP"),
        "targetPort": field(INTEGER_OR_TEXT, "Port of the pods."),
    },
)

_POLICY_PORT = record(
    "NetworkPolicyPort", {"port": INTEGER_OR_TEXT, "endPort": INTEGER, "protocol": TEXT}
)

_POLICY_PEER = record(
    "NetworkPolicyPeer",
    {
        "podSelector": LABEL_SELECTOR,
        "namespaceSelector": LABEL_SELECTOR,
        "ipBlock": record("IPBlock", {"cidr": required(TEXT), "except": ListOf(TEXT)}),
    },
)

OF_KINDS: Mapping[Kind, Record] = {
    SERVICE: kept(
        "Service",
        {
            "spec": record(
                "ServiceSpec",
                {
                    "clusterIP": TEXT,
                    "clusterIPs": ListOf(TEXT),
                    "externalIPs": ListOf(TEXT),
                    "externalName": TEXT,
                    "externalTrafficPolicy": TEXT,
                    "internalTrafficPolicy": TEXT,
                    "ipFamilies": ListOf(TEXT),
                    "ipFamilyPolicy": TEXT,
                    "loadBalancerClass": TEXT,
                    "loadBalancerIP": TEXT,
                    "loadBalancerSourceRanges": ListOf(TEXT),
                    "allocateLoadBalancerNodePorts": BOOLEAN,
                    "healthCheckNodePort": INTEGER,
                    "ports": field(
                        ListOf(_SERVICE_PORT, keys=("port", "protocol")), "Ports of the Service."
                    ),
                    "publishNotReadyAddresses": BOOLEAN,
                    "selector": field(MapOf(TEXT), "Labels of the pods that it names."),
                    "sessionAffinity": TEXT,
                    "sessionAffinityConfig": ANYTHING,
                    "trafficDistribution": TEXT,
                    "type": field(TEXT, "ClusterIP, NodePort, LoadBalancer or ExternalName."),
                },
            ),
            "status": ANYTHING,
        },
        "A name for pods.",
    ),
    ENDPOINT_SLICE: kept(
        "EndpointSlice",
        {
            "addressType": required(TEXT, "IPv4, IPv6 or FQDN."),
            "endpoints": ListOf(ANYTHING),
            "ports": ListOf(ANYTHING),
        },
        "Addresses behind a Service.",
    ),
    NETWORK_POLICY: kept(
        "NetworkPolicy",
        {
            "spec": record(
                "NetworkPolicySpec",
                {
                    "podSelector": field(LABEL_SELECTOR, "Pods that the policy is for."),
                    "policyTypes": ListOf(TEXT),
                    "ingress": ListOf(
                        record(
                            "NetworkPolicyIngressRule",
                            {"from": ListOf(_POLICY_PEER), "ports": ListOf(_POLICY_PORT)},
                        )
                    ),
                    "egress": ListOf(
                        record(
                            "NetworkPolicyEgressRule",
                            {"to": ListOf(_POLICY_PEER), "ports": ListOf(_POLICY_PORT)},
                        )
                    ),
                },
            )
        },
        "Which traffic pods take and send.",
    ),
}
"""What is said of the network."""
