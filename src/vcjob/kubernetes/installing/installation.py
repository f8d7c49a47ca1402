"""What an administrator decides about an installation of vcjob, and the names in it."""

import msgspec

from vcjob import __version__
from vcjob.api.names import MANAGED_BY, MANAGED_BY_VALUE
from vcjob.api.types import Object

NAMESPACE = "vcjob-system"
OPERATOR = "vcjob-operator"
"""The operator's Deployment, ServiceAccount, roles and Lease."""
WEBHOOK = "vcjob-webhook"
"""The webhook's Deployment, ServiceAccount, roles, Service and configurations."""
CERTIFICATE_SECRET = "vcjob-webhook-certificate"
VOLCANO_NAMESPACE = "volcano-system"
"""Where Volcano is unless its administrator chose otherwise."""
VOLCANO_LEASES = ("vc-controller-manager", "volcano")
"""Leases of Volcano's controller and scheduler; who holds them is at work."""

PART_OF = "app.kubernetes.io/part-of"
PART_OF_VALUE = "vcjob"
COMPONENT = "app.kubernetes.io/component"
APPLICATION = "app.kubernetes.io/name"

SCHEDULERS = ("auto", "volcano", "builtin")


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be installed.

    ``namespaces`` are the only ones whose Jobs are looked after; none means all. ``secrets`` is
    whether the operator may make Secrets, which the plugin ssh needs. ``beside_volcano`` tells that
    Volcano is installed. ``priority_class`` is that of the operator's own pods, if not empty.
    ``take_over`` starts although Volcano's controller still holds its Lease. Its Leases are in
    ``volcano_namespace``.
    """

    namespace: str = NAMESPACE
    namespaces: tuple[str, ...] = ()
    image: str = f"vcjob:{__version__}"
    replicas: int = 2
    scheduler: str = "auto"
    webhook: bool = True
    secrets: bool = True
    beside_volcano: bool = False
    take_over: bool = False
    third_party_plugins: bool = False
    allowed_annotations: tuple[str, ...] = ()
    priority_class: str = ""
    volcano_namespace: str = VOLCANO_NAMESPACE

    @property
    def roles_only(self) -> bool:
        """Whether there are rights in single namespaces only.

        To admit gangs itself (``builtin``) the operator has to read the whole cluster's nodes and
        pods, even where it looks after some namespaces only.
        """
        return bool(self.namespaces) and self.scheduler != "builtin"

    @property
    def gang_scheduler(self) -> str:
        """What ``vcjob operator`` is told: to look for itself takes rights on the cluster."""
        return "volcano" if self.roles_only else self.scheduler

    @property
    def has_webhook(self) -> bool:
        """Whether there is a webhook: its configurations belong to the whole cluster."""
        return self.webhook and not self.namespaces

    @property
    def knows_volcano(self) -> bool:
        """Whether Volcano's namespace is there for certain, so that it can hold a Role."""
        return self.beside_volcano or self.take_over or self.roles_only


def labels(component: str) -> dict[str, str]:
    """The labels of an object that is installed."""
    return {
        APPLICATION: "vcjob",
        COMPONENT: component,
        PART_OF: PART_OF_VALUE,
        MANAGED_BY: MANAGED_BY_VALUE,
    }


def metadata(name: str, component: str, namespace: str = "") -> Object:
    """The metadata of an object that is installed."""
    made: Object = {"name": name}
    if namespace:
        made["namespace"] = namespace
    return {**made, "labels": labels(component)}


def is_ours(obj: Object) -> bool:
    """Whether an object of a cluster is one that ``vcjob manifests`` printed."""
    return bool((obj["metadata"].get("labels") or {}).get(PART_OF) == PART_OF_VALUE)
