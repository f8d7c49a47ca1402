"""The Deployments of the operator and the webhook, and what belongs to each.

Pods meet the Pod Security Standard "restricted" (Kubernetes documentation, "Pod Security
Standards"). There is no limit of CPU: to be slowed down would cost the Lease.
"""

from collections.abc import Iterator

from vcjob.api.kinds import SERVICE
from vcjob.api.types import Object
from vcjob.kubernetes.installing.installation import (
    APPLICATION,
    COMPONENT,
    OPERATOR,
    VOLCANO_NAMESPACE,
    WEBHOOK,
    Installation,
    labels,
    metadata,
)

HEALTH_PORT = 8080
"""Probes and metrics."""
WEBHOOK_PORT = 8443
SERVICE_PORT = 443
USER = 65532
"""Not root, and by custom nobody's: the Dockerfile's user."""

_HEALTH: Object = {"name": "health", "containerPort": HEALTH_PORT}
_COMMON = (f"--health-address=:{HEALTH_PORT}", "--log-format=json")
_GRACE_SECONDS = 30
_REPLICAS_AWAY = 1
_OPERATOR_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "1Gi"},
}
_WEBHOOK_RESOURCES = {
    "requests": {"cpu": "50m", "memory": "96Mi"},
    "limits": {"memory": "512Mi"},
}


def operator(installation: Installation) -> Iterator[Object]:
    """What runs ``vcjob operator``."""
    container = {
        **_container("operator", installation, operator_arguments(installation)),
        "ports": [_HEALTH],
        "resources": _OPERATOR_RESOURCES,
    }
    yield _deployment(OPERATOR, "operator", installation, container)
    yield _disruption_budget(OPERATOR, "operator", installation)


def webhook(installation: Installation) -> Iterator[Object]:
    """What runs ``vcjob webhook``, and the Service by which API servers reach it."""
    container = {
        **_container("webhook", installation, webhook_arguments(installation)),
        "ports": [{"name": "webhook", "containerPort": WEBHOOK_PORT}, _HEALTH],
        "resources": _WEBHOOK_RESOURCES,
    }
    yield {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": metadata(WEBHOOK, "webhook", installation.namespace),
        "spec": {
            "selector": _selector("webhook"),
            "ports": [{"name": "https", "port": SERVICE_PORT, "targetPort": "webhook"}],
        },
    }
    yield _deployment(WEBHOOK, "webhook", installation, container)
    yield _disruption_budget(WEBHOOK, "webhook", installation)


def operator_arguments(installation: Installation) -> list[str]:
    """How ``vcjob`` is called in the operator's pods."""
    arguments = [
        "operator",
        f"--scheduler={installation.gang_scheduler}",
        f"--lease-namespace={installation.namespace}",
        *_COMMON,
    ]
    if installation.namespaces:
        arguments.append(f"--namespaces={','.join(installation.namespaces)}")
    if installation.take_over:
        arguments.append("--take-over")
    if installation.volcano_namespace != VOLCANO_NAMESPACE:
        arguments.append(f"--volcano-namespace={installation.volcano_namespace}")
    return arguments + _allowed(installation)


def webhook_arguments(installation: Installation) -> list[str]:
    """How ``vcjob`` is called in the webhook's pods."""
    arguments = [
        "webhook",
        f"--address=:{WEBHOOK_PORT}",
        f"--namespace={installation.namespace}",
        f"--service={WEBHOOK}",
        *_COMMON,
    ]
    return arguments + _allowed(installation)


def _allowed(installation: Installation) -> list[str]:
    allowed = [f"--allow-annotation={name}" for name in installation.allowed_annotations]
    return [*allowed, *(["--third-party-plugins"] if installation.third_party_plugins else [])]


def _container(name: str, installation: Installation, arguments: list[str]) -> Object:
    return {
        "name": name,
        "image": installation.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "livenessProbe": {**_asks("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**_asks("/readyz"), "periodSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _asks(path: str) -> Object:
    return {"httpGet": {"path": path, "port": _HEALTH["name"], "scheme": "HTTP"}}


def _deployment(name: str, component: str, installation: Installation, container: Object) -> Object:
    pod: Object = {
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _selector(component)},
            }
        ],
        "containers": [container],
    }
    if installation.priority_class:
        pod["priorityClassName"] = installation.priority_class
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, component, installation.namespace),
        "spec": {
            "replicas": installation.replicas,
            "selector": {"matchLabels": _selector(component)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {"metadata": {"labels": labels(component)}, "spec": pod},
        },
    }


def _disruption_budget(name: str, component: str, installation: Installation) -> Object:
    """Drains take one replica at a time; a single one may be taken, or no node could be drained."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, component, installation.namespace),
        "spec": {
            "maxUnavailable": _REPLICAS_AWAY,
            "selector": {"matchLabels": _selector(component)},
        },
    }


def _selector(component: str) -> dict[str, str]:
    made = labels(component)
    return {key: made[key] for key in (APPLICATION, COMPONENT)}
