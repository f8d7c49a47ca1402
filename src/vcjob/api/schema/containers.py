"""Containers: what runs in a pod, with its environment, ports, probes and resources.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.references import (
    CONFIG_MAP_KEY_SELECTOR,
    OBJECT_FIELD_SELECTOR,
    RESOURCE_FIELD_SELECTOR,
    SECRET_KEY_SELECTOR,
)
from vcjob.api.schema.security import SECURITY_CONTEXT
from vcjob.api.schema.types import (
    BOOLEAN,
    COUNT,
    INT64_MAX,
    INTEGER,
    INTEGER_OR_TEXT,
    LABEL,
    LONG,
    PORT,
    RESOURCES,
    SUBDOMAIN,
    TEXT,
    Integer,
    ListOf,
    Text,
    choice,
    field,
    record,
    required,
)

FILE_KEY_SELECTOR = record(
    "FileKeySelector",
    {
        "key": required(Text("env-name", min_length=1)),
        "optional": BOOLEAN,
        "path": required(Text("relative-path", min_length=1)),
        "volumeName": required(Text("dns-1123-label", min_length=1)),
    },
)

ENV_VAR_SOURCE = record(
    "EnvVarSource",
    {
        "configMapKeyRef": CONFIG_MAP_KEY_SELECTOR,
        "fieldRef": OBJECT_FIELD_SELECTOR,
        "fileKeyRef": FILE_KEY_SELECTOR,
        "resourceFieldRef": RESOURCE_FIELD_SELECTOR,
        "secretKeyRef": SECRET_KEY_SELECTOR,
    },
)

ENV_VAR = record(
    "EnvVar",
    {
        "name": required(Text("env-name", min_length=1)),
        "value": TEXT,
        "valueFrom": ENV_VAR_SOURCE,
    },
)

CONFIG_MAP_ENV_SOURCE = record(
    "ConfigMapEnvSource",
    {
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

SECRET_ENV_SOURCE = record(
    "SecretEnvSource",
    {
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

ENV_FROM_SOURCE = record(
    "EnvFromSource",
    {
        "configMapRef": CONFIG_MAP_ENV_SOURCE,
        "prefix": Text("env-name"),
        "secretRef": SECRET_ENV_SOURCE,
    },
)

EXEC_ACTION = record(
    "ExecAction",
    {
        "command": ListOf(TEXT),
    },
)

HTTP_HEADER = record(
    "HTTPHeader",
    {
        "name": required(TEXT),
        "value": required(TEXT),
    },
)

HTTP_GET_ACTION = record(
    "HTTPGetAction",
    {
        "host": TEXT,
        "httpHeaders": ListOf(HTTP_HEADER),
        "path": TEXT,
        "port": required(INTEGER_OR_TEXT),
        "scheme": choice("HTTP", "HTTPS"),
    },
)

SLEEP_ACTION = record(
    "SleepAction",
    {
        "seconds": required(LONG),
    },
)

TCP_SOCKET_ACTION = record(
    "TCPSocketAction",
    {
        "host": TEXT,
        "port": required(INTEGER_OR_TEXT),
    },
)

LIFECYCLE_HANDLER = record(
    "LifecycleHandler",
    {
        "exec": EXEC_ACTION,
        "httpGet": HTTP_GET_ACTION,
        "sleep": SLEEP_ACTION,
        "tcpSocket": TCP_SOCKET_ACTION,
    },
)

LIFECYCLE = record(
    "Lifecycle",
    {
        "postStart": LIFECYCLE_HANDLER,
        "preStop": LIFECYCLE_HANDLER,
        "stopSignal": Text(),
    },
)

GRPC_ACTION = record(
    "GRPCAction",
    {
        "port": required(PORT),
        "service": TEXT,
    },
)

PROBE = record(
    "Probe",
    {
        "exec": EXEC_ACTION,
        "failureThreshold": COUNT,
        "grpc": GRPC_ACTION,
        "httpGet": HTTP_GET_ACTION,
        "initialDelaySeconds": COUNT,
        "periodSeconds": COUNT,
        "successThreshold": COUNT,
        "tcpSocket": TCP_SOCKET_ACTION,
        "terminationGracePeriodSeconds": Integer(1, INT64_MAX),
        "timeoutSeconds": COUNT,
    },
)

CONTAINER_PORT = record(
    "ContainerPort",
    {
        "containerPort": required(PORT),
        "hostIP": TEXT,
        "hostPort": Integer(0, 65535),
        "name": Text("port-name"),
        "protocol": field(choice("TCP", "UDP", "SCTP"), default="TCP"),
    },
)

CONTAINER_RESIZE_POLICY = record(
    "ContainerResizePolicy",
    {
        "resourceName": required(choice("cpu", "memory")),
        "restartPolicy": required(choice("NotRequired", "RestartContainer")),
    },
)

RESOURCE_CLAIM = record(
    "ResourceClaim",
    {
        "name": required(Text("dns-1123-label", min_length=1)),
        "request": LABEL,
    },
)

RESOURCE_REQUIREMENTS = record(
    "ResourceRequirements",
    {
        "claims": ListOf(RESOURCE_CLAIM, keys=("name", "request")),
        "limits": RESOURCES,
        "requests": RESOURCES,
    },
)

CONTAINER_RESTART_RULE_ON_EXIT_CODES = record(
    "ContainerRestartRuleOnExitCodes",
    {
        "operator": required(choice("In", "NotIn")),
        "values": ListOf(INTEGER),
    },
)

CONTAINER_RESTART_RULE = record(
    "ContainerRestartRule",
    {
        "action": required(choice("Restart", "RestartAllContainers")),
        "exitCodes": CONTAINER_RESTART_RULE_ON_EXIT_CODES,
    },
)

VOLUME_DEVICE = record(
    "VolumeDevice",
    {
        "devicePath": required(Text("path-without-backsteps", min_length=1)),
        "name": required(Text("dns-1123-label", min_length=1)),
    },
)

VOLUME_MOUNT = record(
    "VolumeMount",
    {
        "mountPath": required(Text("mount-path", min_length=1)),
        "mountPropagation": choice("None", "HostToContainer", "Bidirectional"),
        "name": required(Text(min_length=1)),
        "readOnly": BOOLEAN,
        "recursiveReadOnly": choice("Disabled", "IfPossible", "Enabled"),
        "subPath": Text("relative-path"),
        "subPathExpr": Text("relative-path"),
    },
)

CONTAINER = record(
    "Container",
    {
        "args": ListOf(TEXT),
        "command": ListOf(TEXT),
        "env": ListOf(ENV_VAR, keys=("name",)),
        "envFrom": ListOf(ENV_FROM_SOURCE),
        "image": TEXT,
        "imagePullPolicy": choice("Always", "IfNotPresent", "Never"),
        "lifecycle": LIFECYCLE,
        "livenessProbe": PROBE,
        "name": required(Text("dns-1123-label", min_length=1)),
        "ports": ListOf(CONTAINER_PORT, keys=("containerPort", "protocol")),
        "readinessProbe": PROBE,
        "resizePolicy": ListOf(CONTAINER_RESIZE_POLICY),
        "resources": RESOURCE_REQUIREMENTS,
        "restartPolicy": choice("Always", "OnFailure", "Never"),
        "restartPolicyRules": ListOf(CONTAINER_RESTART_RULE),
        "securityContext": SECURITY_CONTEXT,
        "startupProbe": PROBE,
        "stdin": BOOLEAN,
        "stdinOnce": BOOLEAN,
        "terminationMessagePath": TEXT,
        "terminationMessagePolicy": choice("File", "FallbackToLogsOnError"),
        "tty": BOOLEAN,
        "volumeDevices": ListOf(VOLUME_DEVICE, keys=("devicePath",)),
        "volumeMounts": ListOf(VOLUME_MOUNT, keys=("mountPath",)),
        "workingDir": TEXT,
    },
)

# An ephemeral container has all fields of a container, and which one it looks into.
EPHEMERAL_CONTAINER = record(
    "EphemeralContainer", {**CONTAINER.fields, "targetContainerName": TEXT}
)
