"""The pod template: its metadata and the spec of the pod.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.containers import CONTAINER, EPHEMERAL_CONTAINER, RESOURCE_REQUIREMENTS
from vcjob.api.schema.meta import TEMPLATE_META
from vcjob.api.schema.references import LOCAL_OBJECT_REFERENCE
from vcjob.api.schema.scheduling import AFFINITY, TOLERATION, TOPOLOGY_SPREAD_CONSTRAINT
from vcjob.api.schema.security import POD_SECURITY_CONTEXT
from vcjob.api.schema.types import (
    BOOLEAN,
    INT32_MAX,
    INTEGER,
    LABEL,
    LABELS,
    LONG_COUNT,
    RESOURCES,
    SUBDOMAIN,
    TEXT,
    Integer,
    ListOf,
    Text,
    choice,
    record,
    required,
)
from vcjob.api.schema.volumes import VOLUME

POD_DNS_CONFIG_OPTION = record(
    "PodDNSConfigOption",
    {
        "name": TEXT,
        "value": TEXT,
    },
)

POD_DNS_CONFIG = record(
    "PodDNSConfig",
    {
        "nameservers": ListOf(TEXT),
        "options": ListOf(POD_DNS_CONFIG_OPTION),
        "searches": ListOf(TEXT),
    },
)

HOST_ALIAS = record(
    "HostAlias",
    {
        "hostnames": ListOf(SUBDOMAIN),
        "ip": required(Text(min_length=1)),
    },
)

POD_OS = record(
    "PodOS",
    {
        "name": required(choice("linux", "windows")),
    },
)

POD_READINESS_GATE = record(
    "PodReadinessGate",
    {
        "conditionType": required(Text("qualified-name", min_length=1)),
    },
)

POD_RESOURCE_CLAIM = record(
    "PodResourceClaim",
    {
        "name": required(Text("dns-1123-label", min_length=1)),
        "resourceClaimName": SUBDOMAIN,
        "resourceClaimTemplateName": SUBDOMAIN,
    },
)

POD_SCHEDULING_GATE = record(
    "PodSchedulingGate",
    {
        "name": required(Text("qualified-name", min_length=1)),
    },
)

POD_SPEC = record(
    "PodSpec",
    {
        "activeDeadlineSeconds": Integer(1, INT32_MAX),
        "affinity": AFFINITY,
        "automountServiceAccountToken": BOOLEAN,
        "containers": required(ListOf(CONTAINER, keys=("name",), min_items=1)),
        "dnsConfig": POD_DNS_CONFIG,
        "dnsPolicy": choice("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
        "enableServiceLinks": BOOLEAN,
        "ephemeralContainers": ListOf(EPHEMERAL_CONTAINER, keys=("name",)),
        "hostAliases": ListOf(HOST_ALIAS, keys=("ip",)),
        "hostIPC": BOOLEAN,
        "hostNetwork": BOOLEAN,
        "hostPID": BOOLEAN,
        "hostUsers": BOOLEAN,
        "hostname": LABEL,
        "hostnameOverride": SUBDOMAIN,
        "imagePullSecrets": ListOf(LOCAL_OBJECT_REFERENCE, keys=("name",)),
        "initContainers": ListOf(CONTAINER, keys=("name",)),
        "nodeName": SUBDOMAIN,
        "nodeSelector": LABELS,
        "os": POD_OS,
        "overhead": RESOURCES,
        "preemptionPolicy": choice("PreemptLowerPriority", "Never"),
        "priority": INTEGER,
        "priorityClassName": SUBDOMAIN,
        "readinessGates": ListOf(POD_READINESS_GATE),
        "resourceClaims": ListOf(POD_RESOURCE_CLAIM, keys=("name",)),
        "resources": RESOURCE_REQUIREMENTS,
        "restartPolicy": choice("Always", "OnFailure", "Never"),
        "runtimeClassName": SUBDOMAIN,
        "schedulerName": TEXT,
        "schedulingGates": ListOf(POD_SCHEDULING_GATE, keys=("name",)),
        "securityContext": POD_SECURITY_CONTEXT,
        "serviceAccount": SUBDOMAIN,
        "serviceAccountName": SUBDOMAIN,
        "setHostnameAsFQDN": BOOLEAN,
        "shareProcessNamespace": BOOLEAN,
        "subdomain": LABEL,
        "terminationGracePeriodSeconds": LONG_COUNT,
        "tolerations": ListOf(TOLERATION),
        "topologySpreadConstraints": ListOf(
            TOPOLOGY_SPREAD_CONSTRAINT, keys=("topologyKey", "whenUnsatisfiable")
        ),
        "volumes": ListOf(VOLUME, keys=("name",)),
    },
)

POD_TEMPLATE = record(
    "PodTemplateSpec",
    {
        "metadata": TEMPLATE_META,
        "spec": required(POD_SPEC),
    },
    keeps_unknown=True,
)
