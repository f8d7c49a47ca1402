"""Everything else that is installed, and the parts in which all of it is printed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum

from vcjob.api.crd import INSTALLED, crd
from vcjob.api.kinds import NAMESPACE, QUEUE, SERVICE_ACCOUNT
from vcjob.api.queues import DEFAULT_QUEUE, ROOT
from vcjob.api.types import Object
from vcjob.kubernetes.installing import workloads
from vcjob.kubernetes.installing.installation import (
    OPERATOR,
    WEBHOOK,
    Installation,
    labels,
    metadata,
)
from vcjob.kubernetes.installing.roles import COMPONENTS, roles


class Part(StrEnum):
    """What can be printed by itself, in the order in which it is applied."""

    CRDS = "crds"
    RBAC = "rbac"
    OPERATOR = "operator"
    WEBHOOK = "webhook"
    QUEUES = "queues"


def objects_of(
    part: Part, installation: Installation, configurations: Iterable[Object] = ()
) -> list[Object]:
    """The objects of a part; ``configurations`` are those by which API servers ask the webhook."""
    if part is Part.WEBHOOK and not installation.has_webhook:
        return []
    makers: Mapping[Part, Callable[[], Iterable[Object]]] = {
        Part.CRDS: definitions,
        Part.RBAC: lambda: (
            *namespace(installation),
            *accounts(installation),
            *roles(installation),
        ),
        Part.OPERATOR: lambda: workloads.operator(installation),
        Part.WEBHOOK: lambda: (*workloads.webhook(installation), *map(_labelled, configurations)),
        Part.QUEUES: queues,
    }
    return list(makers[part]())


def definitions() -> Iterator[Object]:
    """The CustomResourceDefinitions of all kinds that are ours to define."""
    for kind in INSTALLED:
        made = crd(kind)
        about = {**made["metadata"], "labels": labels("definitions")}
        yield {**made, "metadata": about}


def namespace(installation: Installation) -> Iterator[Object]:
    """The namespace, unless it is one of the cluster's own, which are not ours to restrict."""
    name = installation.namespace
    if name == "default" or name.startswith("kube-"):
        return
    about = metadata(name, "namespace")
    about["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    yield {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": about}


def accounts(installation: Installation) -> Iterator[Object]:
    """The ServiceAccounts. Only pods that ask for it get a token."""
    for account in (OPERATOR, WEBHOOK) if installation.has_webhook else (OPERATOR,):
        yield {
            "apiVersion": SERVICE_ACCOUNT.api_version,
            "kind": SERVICE_ACCOUNT.kind,
            "metadata": metadata(account, COMPONENTS[account], installation.namespace),
            "automountServiceAccountToken": False,
        }


def queues() -> Iterator[Object]:
    """The queue that Jobs fall back on, and the one above all."""
    specs: tuple[tuple[str, Object], ...] = (
        (ROOT, {"weight": 1}),
        (DEFAULT_QUEUE, {"weight": 1, "parent": ROOT}),
    )
    for name, spec in specs:
        yield {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": metadata(name, "queues"),
            "spec": {**spec, "reclaimable": True},
        }


def _labelled(configuration: Object) -> Object:
    about = configuration["metadata"]
    both = {**about.get("labels", {}), **labels("webhook")}
    return {**configuration, "metadata": {**about, "labels": both}}
