"""Fields of the served kinds that vcjob only keeps: for OpenAPI, merge keys and unknown fields.

Kinds that vcjob acts on come from ``api/schema``. Source: Kubernetes API reference.
"""

from collections.abc import Mapping

from vcjob.api.crd import INSTALLED
from vcjob.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    ENDPOINT_SLICE,
    EVENT,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.schema.job import custom_object
from vcjob.api.schema.pods import POD_SPEC
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.support import RECORDS
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    INTEGER_OR_TEXT,
    RESOURCES,
    SUBDOMAIN,
    TEXT,
    TIME,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    Type,
    field,
    record,
    required,
)
from vcjob.local.apiserver.event_shapes import EVENT_OF_EVENTS
from vcjob.local.apiserver.structural_types import JSON_SCHEMA


def _kept(name: str, fields: dict[str, Type | Field], doc: str) -> Record:
    whole = custom_object(name, fields, doc)
    return record(name, whole.fields, keeps_unknown=True, doc=doc)


_OBJECT_REFERENCE = record(
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

_CONDITIONS = ListOf(
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

_CONTAINER_STATUSES = ListOf(
    record(
        "ContainerStatus",
        {
            "containerID": TEXT,
            "image": TEXT,
            "imageID": TEXT,
            "name": required(TEXT, "Name of the container."),
            "ready": field(BOOLEAN, "Whether its readiness probe succeeds."),
            "restartCount": field(INTEGER, "How often it was started again."),
            "started": BOOLEAN,
            "state": field(ANYTHING, "waiting, running or terminated, with details."),
            "lastState": field(ANYTHING, "How it ended before the latest restart."),
        },
    )
)

_POD_STATUS = record(
    "PodStatus",
    {
        "phase": field(TEXT, "Pending, Running, Succeeded, Failed or Unknown."),
        "conditions": field(_CONDITIONS, "PodScheduled, Initialized, ContainersReady, Ready."),
        "containerStatuses": field(_CONTAINER_STATUSES, "How each container is."),
        "initContainerStatuses": field(_CONTAINER_STATUSES, "How each init container is."),
        "ephemeralContainerStatuses": _CONTAINER_STATUSES,
        "hostIP": TEXT,
        "message": field(TEXT, "Why the pod is in this phase, in one sentence."),
        "nominatedNodeName": TEXT,
        "podIP": field(TEXT, "Address of the pod."),
        "podIPs": ListOf(record("PodIP", {"ip": required(TEXT)}), keys=("ip",)),
        "hostIPs": ListOf(record("HostIP", {"ip": required(TEXT)}), keys=("ip",)),
        "observedGeneration": INTEGER,
        "qosClass": TEXT,
        "reason": field(TEXT, "Why the pod is in this phase, in one word."),
        "startTime": TIME,
    },
)

_VERSION = record(
    "CustomResourceDefinitionVersion",
    {
        "name": required(Text("dns-1123-label", min_length=1), "Name of the version."),
        "served": required(BOOLEAN, "Whether clients can use it."),
        "storage": required(BOOLEAN, "Whether objects are kept in it."),
        "additionalPrinterColumns": ListOf(
            record(
                "CustomResourceColumnDefinition",
                {
                    "name": required(TEXT),
                    "type": required(TEXT),
                    "jsonPath": required(TEXT),
                    "description": TEXT,
                    "format": TEXT,
                    "priority": INTEGER,
                },
            )
        ),
        "deprecated": BOOLEAN,
        "deprecationWarning": TEXT,
        "schema": record("CustomResourceValidation", {"openAPIV3Schema": JSON_SCHEMA}),
        "selectableFields": ListOf(ANYTHING),
        "subresources": MapOf(MapOf(ANYTHING)),
    },
)

_WEBHOOK_FIELDS: dict[str, Type | Field] = {
    "name": required(TEXT, "Name of the webhook, a full domain name."),
    "admissionReviewVersions": required(ListOf(TEXT), "Versions of reviews that it understands."),
    "clientConfig": required(
        record(
            "WebhookClientConfig",
            {
                "caBundle": field(TEXT, "Who signed its certificate: base64 of PEM."),
                "service": record(
                    "ServiceReference",
                    {
                        "name": required(TEXT),
                        "namespace": required(TEXT),
                        "path": TEXT,
                        "port": INTEGER,
                    },
                ),
                "url": TEXT,
            },
        ),
        "Where it is.",
    ),
    "failurePolicy": TEXT,
    "matchConditions": ListOf(
        record("MatchCondition", {"name": required(TEXT), "expression": required(TEXT)}),
        keys=("name",),
    ),
    "matchPolicy": TEXT,
    "namespaceSelector": LABEL_SELECTOR,
    "objectSelector": LABEL_SELECTOR,
    "rules": ListOf(
        record(
            "RuleWithOperations",
            {
                "apiGroups": ListOf(TEXT),
                "apiVersions": ListOf(TEXT),
                "operations": ListOf(TEXT),
                "resources": ListOf(TEXT),
                "scope": TEXT,
            },
        )
    ),
    "sideEffects": required(TEXT, "None or NoneOnDryRun."),
    "timeoutSeconds": INTEGER,
}

_EVENT_FIELDS: dict[str, Type | Field] = {
    "action": TEXT,
    "reason": field(TEXT, "Why, in one word."),
    "related": _OBJECT_REFERENCE,
    "reportingInstance": TEXT,
    "series": ANYTHING,
    "type": field(TEXT, "Normal or Warning."),
    "eventTime": TIME,
}

OF_KINDS: Mapping[Kind, Record] = {
    **{kind: installed.record for kind, installed in INSTALLED.items()},
    **RECORDS,
    POD: _kept(
        "Pod",
        {
            "spec": required(POD_SPEC, "What shall run."),
            "status": field(_POD_STATUS, "What became of it. Written by the node."),
        },
        "Containers that run together, with one address.",
    ),
    SERVICE: _kept(
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
    ENDPOINT_SLICE: _kept(
        "EndpointSlice",
        {
            "addressType": required(TEXT, "IPv4, IPv6 or FQDN."),
            "endpoints": ListOf(ANYTHING),
            "ports": ListOf(ANYTHING),
        },
        "Addresses behind a Service.",
    ),
    NETWORK_POLICY: _kept(
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
    EVENT: _kept(
        "Event",
        {
            **_EVENT_FIELDS,
            "count": field(INTEGER, "How often it happened."),
            "firstTimestamp": TIME,
            "lastTimestamp": TIME,
            "involvedObject": required(_OBJECT_REFERENCE, "What it is about."),
            "message": field(TEXT, "What happened."),
            "reportingComponent": TEXT,
            "source": record("EventSource", {"component": TEXT, "host": TEXT}),
        },
        "Something that happened, for people to read.",
    ),
    EVENT_OF_EVENTS: _kept(
        "Event",
        {
            **_EVENT_FIELDS,
            "note": field(TEXT, "What happened."),
            "regarding": field(_OBJECT_REFERENCE, "What it is about."),
            "reportingController": TEXT,
            "deprecatedCount": INTEGER,
            "deprecatedFirstTimestamp": TIME,
            "deprecatedLastTimestamp": TIME,
            "deprecatedSource": ANYTHING,
        },
        "Something that happened, for people to read.",
    ),
    NODE: _kept(
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
                    "conditions": _CONDITIONS,
                    "nodeInfo": ANYTHING,
                },
            ),
        },
        "A machine that pods run on.",
    ),
    NAMESPACE: _kept(
        "Namespace",
        {
            "spec": record("NamespaceSpec", {"finalizers": ListOf(TEXT)}),
            "status": record("NamespaceStatus", {"phase": TEXT, "conditions": _CONDITIONS}),
        },
        "A room for names of objects.",
    ),
    SERVICE_ACCOUNT: _kept(
        "ServiceAccount",
        {
            "automountServiceAccountToken": BOOLEAN,
            "imagePullSecrets": ListOf(
                record("LocalObjectReference", {"name": required(TEXT)}), keys=("name",)
            ),
            "secrets": ListOf(_OBJECT_REFERENCE, keys=("name",)),
        },
        "Who pods are to the API.",
    ),
    LEASE: _kept(
        "Lease",
        {
            "spec": record(
                "LeaseSpec",
                {
                    "acquireTime": TIME,
                    "holderIdentity": TEXT,
                    "leaseDurationSeconds": INTEGER,
                    "leaseTransitions": INTEGER,
                    "preferredHolder": TEXT,
                    "renewTime": TIME,
                    "strategy": TEXT,
                },
            )
        },
        "Who leads, and until when.",
    ),
    CUSTOM_RESOURCE_DEFINITION: _kept(
        "CustomResourceDefinition",
        {
            "spec": required(
                record(
                    "CustomResourceDefinitionSpec",
                    {
                        "group": required(SUBDOMAIN, "API group of the kind."),
                        "names": required(
                            record(
                                "CustomResourceDefinitionNames",
                                {
                                    "categories": ListOf(TEXT),
                                    "kind": required(Text(min_length=1)),
                                    "listKind": TEXT,
                                    "plural": required(Text("dns-1123-label", min_length=1)),
                                    "shortNames": ListOf(TEXT),
                                    "singular": TEXT,
                                },
                            ),
                            "Names of the kind.",
                        ),
                        "scope": required(TEXT, "Namespaced or Cluster."),
                        "conversion": ANYTHING,
                        "preserveUnknownFields": BOOLEAN,
                        "versions": required(
                            ListOf(_VERSION, min_items=1), "Versions of the kind."
                        ),
                    },
                ),
                "What the kind is.",
            ),
            "status": ANYTHING,
        },
        "A kind of object that somebody adds to the API.",
    ),
    MUTATING_WEBHOOK_CONFIGURATION: _kept(
        "MutatingWebhookConfiguration",
        {
            "webhooks": ListOf(
                record("MutatingWebhook", {**_WEBHOOK_FIELDS, "reinvocationPolicy": TEXT}),
                keys=("name",),
            )
        },
        "Who may change objects before they are stored; kept, and not called.",
    ),
    VALIDATING_WEBHOOK_CONFIGURATION: _kept(
        "ValidatingWebhookConfiguration",
        {"webhooks": ListOf(record("ValidatingWebhook", _WEBHOOK_FIELDS), keys=("name",))},
        "Who may refuse objects before they are stored; kept, and not called.",
    ),
}
"""The fields of every kind that is served, custom kinds aside."""
