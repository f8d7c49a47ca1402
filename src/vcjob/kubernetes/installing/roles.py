"""Roles and bindings, made from the table of rights."""

from collections.abc import Iterable, Iterator

from vcjob.api.types import Object
from vcjob.kubernetes.installing.installation import (
    OPERATOR,
    WEBHOOK,
    Installation,
    metadata,
)
from vcjob.kubernetes.installing.rights import Right, Scope, granted

_GROUP = "rbac.authorization.k8s.io"
_API_VERSION = f"{_GROUP}/v1"
COMPONENTS = {OPERATOR: "operator", WEBHOOK: "webhook"}
"""The component that each account is for."""


def roles(installation: Installation) -> Iterator[Object]:
    """Every role, each followed by its binding."""
    rights = list(granted(installation))
    for account in COMPONENTS:
        own = [right for right in rights if right.account == account]
        for name, namespace, rules in _roles_of(own, installation):
            if rules:
                yield from _bound(name, namespace, _rules(rules), account, installation)


def _roles_of(
    rights: list[Right], installation: Installation
) -> Iterator[tuple[str, str, list[Right]]]:
    """Name, namespace (none: the cluster's) and rights of each role of one account."""
    of_scope = {scope: [one for one in rights if one.scope is scope] for scope in Scope}
    account = rights[0].account if rights else ""
    everywhere = list(of_scope[Scope.CLUSTER])
    if not installation.namespaces:
        everywhere = of_scope[Scope.JOBS] + everywhere
    if not installation.knows_volcano:
        everywhere += of_scope[Scope.VOLCANO]
    yield account, "", everywhere
    for namespace in installation.namespaces:
        yield account, namespace, of_scope[Scope.JOBS]
    yield f"{account}-own", installation.namespace, of_scope[Scope.OWN]
    if installation.knows_volcano:
        yield f"{account}-volcano", installation.volcano_namespace, of_scope[Scope.VOLCANO]


def _rules(rights: Iterable[Right]) -> list[Object]:
    """One rule for each resource (and names); rows for the same come together."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.kind.group, right.resource, right.names), set()).update(right.verbs)
    rules = []
    for (group, resource, names), allowed in verbs.items():
        rule: Object = {"apiGroups": [group], "resources": [resource]}
        if names:
            rule["resourceNames"] = list(names)
        rules.append({**rule, "verbs": sorted(allowed)})
    return rules


def _bound(
    name: str, namespace: str, rules: list[Object], account: str, installation: Installation
) -> Iterator[Object]:
    kind = "Role" if namespace else "ClusterRole"
    about = metadata(name, COMPONENTS[account], namespace)
    yield {"apiVersion": _API_VERSION, "kind": kind, "metadata": about, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": installation.namespace}
    yield {
        "apiVersion": _API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": about,
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }
