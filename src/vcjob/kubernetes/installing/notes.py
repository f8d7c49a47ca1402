"""What an administrator should know of an installation before it is applied, a sentence each."""

from collections.abc import Collection, Iterator

from vcjob.kubernetes.installing.installation import Installation
from vcjob.kubernetes.installing.objects import Part


def notes(
    installation: Installation,
    parts: Collection[Part],
    *,
    looked: bool = False,
    defines_queues: bool = False,
) -> Iterator[str]:
    """What the objects of ``parts`` do not say themselves.

    ``looked`` is whether the cluster was asked what it has already; ``defines_queues`` whether it
    knows the kind Queue.
    """
    if Part.CRDS in parts and not looked:
        yield (
            "The CustomResourceDefinitions are for clusters without Volcano. Where Volcano is "
            "installed kubectl apply would replace its own: print with --beside-volcano there, or "
            "with --context NAME, which looks. kubectl apply --server-side refuses."
        )
    if Part.CRDS in parts and not (defines_queues or installation.roles_only):
        yield (
            "The operator makes the Queues root and default when they are missing: kubectl cannot "
            "apply a kind together with its definition."
        )
    if Part.RBAC in parts or Part.OPERATOR in parts:
        yield from _of_rights(installation)
    if Part.WEBHOOK in parts and installation.has_webhook:
        yield (
            "Jobs are refused from when the webhook's configurations are there until its pods "
            "answer, usually some seconds."
        )


def _of_rights(installation: Installation) -> Iterator[str]:
    only = " and ".join(installation.namespaces)
    if installation.roles_only:
        yield (
            f"Rights are Roles in {only}, in {installation.namespace} and, to read the Leases of "
            f"Volcano, in {installation.volcano_namespace}. There is no ClusterRole, so these fall "
            "away: the webhook (Jobs are completed by the operator, and wrong ones wait and say "
            "why), gangs admitted by the operator itself (Volcano's scheduler has to be there), "
            "Queues and PriorityClasses (nobody looks whether they exist), opening, closing and "
            "counting Queues, and making the Queues root and default: print them with --only "
            "queues."
        )
    elif installation.namespaces:
        yield (
            f"Rights on Jobs are Roles in {only}. There is a ClusterRole too, because gangs are "
            "admitted by the operator itself, for which it reads all nodes and pods. The webhook "
            "falls away: its configurations belong to the whole cluster. Queues are not opened, "
            "closed or counted, as not all PodGroups are seen."
        )
    if not installation.secrets:
        yield ("The operator may not touch Secrets: Jobs with the plugin ssh wait, and say so.")
    if installation.third_party_plugins:
        yield (
            "Plugins of other packages are code that runs with the rights of the operator and the "
            "webhook; the image has to hold them."
        )
    if installation.allowed_annotations:
        yield (
            "Whoever may make Jobs may use "
            f"{' and '.join(installation.allowed_annotations)}: see docs/security.md."
        )
