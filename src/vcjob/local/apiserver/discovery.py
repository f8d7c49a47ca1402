"""What is served, told to clients: group lists, resource lists, and both at once (aggregated).

Source: Kubernetes documentation, "The Kubernetes API" (discovery), and the API reference.
"""

from collections.abc import Iterable, Iterator

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.apiserver.resources import Resource, Subresource

_ORDER = ("v1", "v1beta1", "v1alpha1")


def core_versions(address: str) -> Object:
    """``/api``. ``address`` is host and port."""
    reach = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [reach]}


def groups(resources: Iterable[Resource]) -> Object:
    """``/apis``."""
    found = _versions(resources)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in found.items() if name],
    }


def group(resources: Iterable[Resource], name: str) -> Object | None:
    """``/apis/GROUP``; None if there is no such group."""
    versions = _versions(resources).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def resource_list(resources: Iterable[Resource], name: str, version: str) -> Object | None:
    """``/api/v1`` or ``/apis/GROUP/VERSION``; None if nothing is served there."""
    found = [one for one in resources if (one.kind.group, one.kind.version) == (name, version)]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].kind.api_version,
        "resources": [entry for resource in found for entry in _entries(resource)],
    }


def aggregated(resources: Iterable[Resource], core: bool, version: str) -> Object:
    """Groups with their resources, of ``/api`` (``core``) or ``/apis``; ``version`` of the form."""
    known = list(resources)
    items = []
    for name, versions in _versions(known).items():
        if (name == "") != core:
            continue
        metadata: Object = {"creationTimestamp": None}
        if name:
            metadata["name"] = name
        items.append(
            {
                "metadata": metadata,
                "versions": [
                    {
                        "version": one,
                        "freshness": "Current",
                        "resources": [
                            _aggregated(resource)
                            for resource in known
                            if (resource.kind.group, resource.kind.version) == (name, one)
                        ],
                    }
                    for one in versions
                ],
            }
        )
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _versions(resources: Iterable[Resource]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for resource in resources:
        versions = found.setdefault(resource.kind.group, [])
        if resource.kind.version not in versions:
            versions.append(resource.kind.version)
    for versions in found.values():
        versions.sort(key=lambda one: (_ORDER.index(one) if one in _ORDER else -1, one))
    return dict(sorted(found.items()))


def _group(name: str, versions: list[str]) -> Object:
    told = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": told, "preferredVersion": told[0]}


def _entries(resource: Resource) -> Iterator[Object]:
    kind = resource.kind
    entry: Object = {
        "name": kind.plural,
        "singularName": resource.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    yield entry
    for part in resource.subresources:
        taken = part.kind or kind
        told: Object = {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": taken.kind,
            "verbs": list(part.verbs),
        }
        if taken.group != kind.group:
            told |= {"group": taken.group, "version": taken.version}
        yield told


def _aggregated(resource: Resource) -> Object:
    kind = resource.kind
    told: Object = {
        "resource": kind.plural,
        "responseKind": _names(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        told["shortNames"] = list(resource.short_names)
    if resource.categories:
        told["categories"] = list(resource.categories)
    if resource.subresources:
        told["subresources"] = [_part(part, kind) for part in resource.subresources]
    return told


def _part(part: Subresource, kind: Kind) -> Object:
    return {
        "subresource": part.name,
        "responseKind": _names(part.kind or kind),
        "verbs": list(part.verbs),
    }


def _names(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
