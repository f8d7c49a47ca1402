"""Which requests an API server asks us about, and the two objects that tell it so.

Source: Kubernetes documentation, "Dynamic Admission Control"; admission.md sections 1 and 5.
An outage of the webhook must not hold up Jobs that were admitted already: PodGroups are then made
without being asked about.
"""

from collections.abc import Iterable

import msgspec

from vcjob.api.kinds import (
    JOB,
    MUTATING_WEBHOOK_CONFIGURATION,
    POD_GROUP,
    QUEUE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Object

CONFIGURATION_NAME = "vcjob-webhook"
SERVICE_NAME = "vcjob-webhook"
SERVICE_PORT = 443
TIMEOUT_SECONDS = 10
"""How long an API server waits for an answer, as with Volcano's webhooks."""

_STAYS = {
    "name": "stays",
    "expression": 'request.operation != "UPDATE" || !has(object.metadata.deletionTimestamp)',
}
"""What is being deleted only loses its finalizers: that nobody answers must not keep it here."""
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_ALWAYS_EXEMPT = "kube-system"


class Webhook(msgspec.Struct, frozen=True):
    """One question of API servers: about what, when, and the path that answers it.

    What ``fails_open`` is admitted where nobody answers.
    """

    name: str
    path: str
    kind: Kind
    operations: tuple[str, ...]
    mutating: bool = False
    fails_open: bool = False


WEBHOOKS: tuple[Webhook, ...] = (
    Webhook("mutatejob.vcjob.dev", "/jobs/mutate", JOB, ("CREATE",), mutating=True),
    Webhook("validatejob.vcjob.dev", "/jobs/validate", JOB, ("CREATE", "UPDATE")),
    Webhook("mutatequeue.vcjob.dev", "/queues/mutate", QUEUE, ("CREATE",), mutating=True),
    Webhook("validatequeue.vcjob.dev", "/queues/validate", QUEUE, ("CREATE", "UPDATE", "DELETE")),
    Webhook(
        "validatepodgroup.vcjob.dev", "/podgroups/validate", POD_GROUP, ("CREATE",), fails_open=True
    ),
)


def webhook_configurations(
    namespace: str,
    service: str = SERVICE_NAME,
    *,
    namespaces: Iterable[str] = (),
    authority: str = "",
) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration.

    Args:
        namespace: where the webhook's Service is; requests for it are exempt, so that whoever
            repairs vcjob does not need vcjob. So are those for kube-system.
        service: the name of the Service.
        namespaces: the only ones whose requests are asked about; none means all. An installation
            for some namespaces leaves Queues alone, which belong to the whole cluster.
        authority: who signed the webhook's certificate, as ``caBundle`` holds it (base64 of PEM).
            Left out, ``vcjob webhook`` writes it when it starts.
    """
    only = tuple(namespaces)
    asked = [webhook for webhook in WEBHOOKS if webhook.kind.namespaced or not only]
    reached: Object = {"service": {"namespace": namespace, "name": service, "port": SERVICE_PORT}}
    if authority:
        reached["caBundle"] = authority
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": CONFIGURATION_NAME,
                "labels": {"app.kubernetes.io/name": "vcjob", MANAGED_BY: MANAGED_BY_VALUE},
            },
            "webhooks": [
                _entry(webhook, reached, namespace, only)
                for webhook in asked
                if webhook.mutating == mutating
            ],
        }
        for kind, mutating in (
            (MUTATING_WEBHOOK_CONFIGURATION, True),
            (VALIDATING_WEBHOOK_CONFIGURATION, False),
        )
    ]


def with_authority(
    configuration: Object, authority: str, namespace: str, service: str
) -> list[Object] | None:
    """The ``webhooks`` of a configuration that is there, with another ``caBundle``.

    Only those that lead to our Service are changed, and nothing else in them; None if all have the
    authority (base64 of PEM) already.
    """
    webhooks: list[Object] = configuration.get("webhooks") or []
    changed = [
        {**entry, "clientConfig": {**entry["clientConfig"], "caBundle": authority}}
        if _leads_to(entry, namespace, service)
        else entry
        for entry in webhooks
    ]
    return None if changed == webhooks else changed


def leads_to(configuration: Object, namespace: str, service: str) -> bool:
    """Whether a configuration that is there has API servers ask a Service."""
    return any(
        _leads_to(entry, namespace, service) for entry in configuration.get("webhooks") or []
    )


def _leads_to(entry: Object, namespace: str, service: str) -> bool:
    reached = (entry.get("clientConfig") or {}).get("service") or {}
    return (reached.get("namespace"), reached.get("name")) == (namespace, service)


def _entry(webhook: Webhook, reached: Object, namespace: str, only: tuple[str, ...]) -> Object:
    service = {**reached["service"], "path": webhook.path}
    entry: Object = {
        "name": webhook.name,
        "clientConfig": {**reached, "service": service},
        "rules": [
            {
                "apiGroups": [webhook.kind.group],
                "apiVersions": [webhook.kind.version],
                "resources": [webhook.kind.plural],
                "operations": list(webhook.operations),
                "scope": "Namespaced" if webhook.kind.namespaced else "Cluster",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore" if webhook.fails_open else "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    if "UPDATE" in webhook.operations:
        entry["matchConditions"] = [_STAYS]
    if webhook.kind.namespaced:
        entry["namespaceSelector"] = {"matchExpressions": _selected(namespace, only)}
    if webhook.mutating:
        # What other webhooks add to a Job afterwards gets its defaults too.
        entry["reinvocationPolicy"] = "IfNeeded"
    return entry


def _selected(namespace: str, only: tuple[str, ...]) -> list[Object]:
    exempt = {"operator": "NotIn", "values": sorted({_ALWAYS_EXEMPT, namespace})}
    selected = [{"key": _NAMESPACE_NAME, **exempt}]
    if only:
        wanted = {"operator": "In", "values": sorted(set(only))}
        selected.append({"key": _NAMESPACE_NAME, **wanted})
    return selected
