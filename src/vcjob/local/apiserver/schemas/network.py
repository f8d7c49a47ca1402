"""Services, EndpointSlices and NetworkPolicies. Source: Kubernetes API reference."""

from collections.abc import Mapping

from vcjob.api.kinds import ENDPOINT_SLICE, NETWORK_POLICY, SERVICE, Kind
from vcjob.api.schema.network_peers import POLICY_PEER
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    INTEGER_OR_TEXT,
    LABELS,
    PORT,
    TEXT,
    ListOf,
    MapOf,
    Record,
    choice,
    field,
    record,
    required,
)
from vcjob.local.apiserver.schemas.parts import OBJECT_REFERENCE, kept

_PROTOCOL = choice("TCP", "UDP", "SCTP")

_SERVICE_PORT = record(
    "ServicePort",
    {
        "appProtocol": TEXT,
        "name": TEXT,
        "nodePort": INTEGER,
        "port": required(PORT, "Port of the Service."),
        "protocol": field(_PROTOCOL, "TCP, UDP or SCTP.", default="TCP"),
        "targetPort": field(INTEGER_OR_TEXT, "Port of the pods."),
    },
)

_POLICY_PORT = record(
    "NetworkPolicyPort", {"port": INTEGER_OR_TEXT, "endPort": PORT, "protocol": _PROTOCOL}
)

_ENDPOINT = record(
    "Endpoint",
    {
        "addresses": required(ListOf(TEXT, min_items=1), "Where it is."),
        "conditions": record(
            "EndpointConditions", {"ready": BOOLEAN, "serving": BOOLEAN, "terminating": BOOLEAN}
        ),
        "deprecatedTopology": MapOf(TEXT),
        "hints": ANYTHING,
        "hostname": TEXT,
        "nodeName": TEXT,
        "targetRef": OBJECT_REFERENCE,
        "zone": TEXT,
    },
)

_ENDPOINT_PORT = record(
    "EndpointPort",
    {"appProtocol": TEXT, "name": TEXT, "port": PORT, "protocol": _PROTOCOL},
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
                    "selector": field(LABELS, "Labels of the pods that it names."),
                    "sessionAffinity": TEXT,
                    "sessionAffinityConfig": ANYTHING,
                    "trafficDistribution": TEXT,
                    "type": field(
                        choice("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
                        "ClusterIP, NodePort, LoadBalancer or ExternalName.",
                    ),
                },
            ),
            "status": ANYTHING,
        },
        "A name for pods.",
    ),
    ENDPOINT_SLICE: kept(
        "EndpointSlice",
        {
            "addressType": required(choice("IPv4", "IPv6", "FQDN"), "IPv4, IPv6 or FQDN."),
            "endpoints": ListOf(_ENDPOINT),
            "ports": ListOf(_ENDPOINT_PORT),
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
                    "policyTypes": ListOf(choice("Ingress", "Egress")),
                    "ingress": ListOf(
                        record(
                            "NetworkPolicyIngressRule",
                            {"from": ListOf(POLICY_PEER), "ports": ListOf(_POLICY_PORT)},
                        )
                    ),
                    "egress": ListOf(
                        record(
                            "NetworkPolicyEgressRule",
                            {"to": ListOf(POLICY_PEER), "ports": ListOf(_POLICY_PORT)},
                        )
                    ),
                },
            )
        },
        "Which traffic pods take and send.",
    ),
}
"""What is said of the network."""
