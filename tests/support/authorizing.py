"""Role-based access control, as an API server decides it from Roles and bindings.

Source: Kubernetes documentation, "Using RBAC Authorization".
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from aiohttp import web

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, Forbidden, ObjectList, WatchEvent
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.resources import Resource
from vcjob.local.apiserver.server import ApiServer


class Asked(NamedTuple):
    """A request. ``namespace`` and ``name`` are empty where it names none."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class Authorizer:
    """What the roles among some objects let a ServiceAccount do.

    ``asked`` are the requests that were allowed, ``refused`` those that were not.
    ``more`` is set at each that was.
    """

    def __init__(self, objects: Iterable[Object], account: str, namespace: str) -> None:
        self._rules = list(_rules_of(list(objects), account, namespace))
        self.asked: set[Asked] = set()
        self.refused: set[Asked] = set()
        self.more = asyncio.Event()

    def allows(self, asked: Asked) -> bool:
        """Whether a rule allows the request."""
        return any(_allows(rule, where, asked) for rule, where in self._rules)

    def check(self, asked: Asked) -> None:
        """Raise Forbidden unless a rule allows the request."""
        if not self.allows(asked):
            self.refused.add(asked)
            raise Forbidden(f"{asked.resource}.{asked.group} is forbidden: cannot {asked.verb}")
        self.asked.add(asked)
        self.more.set()


def _rules_of(
    objects: list[Object], account: str, namespace: str
) -> Iterator[tuple[Object, str | None]]:
    """Each rule, and the only namespace it holds in (None: everywhere)."""
    key = ("kind", "namespace", "name")
    subject = ("ServiceAccount", namespace, account)
    for binding in objects:
        if not binding["kind"].endswith("Binding"):
            continue
        if subject not in [tuple(one[part] for part in key) for one in binding["subjects"]]:
            continue
        where = binding["metadata"].get("namespace")
        wanted = (binding["roleRef"]["kind"], binding["roleRef"]["name"], where)
        [role] = [
            one
            for one in objects
            if (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) == wanted
        ]
        for rule in role["rules"]:
            yield rule, where


def _allows(rule: Object, where: str | None, asked: Asked) -> bool:
    return (
        asked.verb in rule["verbs"]
        and asked.group in rule["apiGroups"]
        and asked.resource in rule["resources"]
        and (where is None or where == asked.namespace)
        and ("resourceNames" not in rule or asked.name in rule["resourceNames"])
    )


class AuthorizingCluster:
    """A ``Cluster`` that asks an authorizer first."""

    def __init__(self, cluster: Cluster, authorizer: Authorizer) -> None:
        self._cluster = cluster
        self._authorizer = authorizer

    def _check(
        self, verb: str, kind: Kind, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        self._authorizer.check(Asked(verb, kind.group, resource, namespace or "", name))

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        self._check("get", kind, namespace, name)
        return await self._cluster.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> ObjectList:
        self._check("list", kind, namespace)
        return await self._cluster.list(kind, namespace, labels)

    async def watch(
        self,
        kind: Kind,
        since: str,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncIterator[WatchEvent]:
        self._check("watch", kind, namespace)
        async for event in self._cluster.watch(kind, since, namespace, labels):
            yield event

    async def create(self, kind: Kind, obj: Object) -> Object:
        self._check("create", kind, obj["metadata"].get("namespace"))
        return await self._cluster.create(kind, obj)

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Object, **options: Any
    ) -> Object:
        subresource = options.get("subresource", "")
        if subresource and options.get("uid") and not options.get("resource_version"):
            self._check("get", kind, namespace, name)  # by which KubernetesCluster sees the UID
        self._check("patch", kind, namespace, name, subresource)
        return await self._cluster.patch(kind, namespace, name, patch, **options)

    async def delete(self, kind: Kind, namespace: str, name: str, **options: Any) -> Object | None:
        self._check("delete", kind, namespace, name)
        return await self._cluster.delete(kind, namespace, name, **options)


class AuthorizingApi(ApiServer):
    """An API server that lets its clients do what an authorizer allows, and no more.

    The authorizer may be set anew; None allows everything. What every account may do on a cluster
    (to ask what it may do) is allowed.
    """

    authorizer: Authorizer | None = None

    async def _about_resource(
        self, request: web.BaseRequest, resource: Resource, place: Place
    ) -> web.StreamResponse:
        if self.authorizer is not None and resource.verbs != ("create",):
            part = f"/{place.subresource}" if place.subresource else ""
            verb = _verb_of(request, place)
            asked = Asked(verb, place.group, place.plural + part, place.namespace, place.name)
            self.authorizer.check(asked)
        return await super()._about_resource(request, resource, place)

    async def _review(
        self, request: web.BaseRequest, resource: Resource, place: Place
    ) -> web.StreamResponse:
        if self.authorizer is None or resource.kind.kind != "SelfSubjectAccessReview":
            return await super()._review(request, resource, place)
        review = await request.json()
        about = review["spec"]["resourceAttributes"]
        part = f"/{about['subresource']}" if about.get("subresource") else ""
        asked = Asked(
            about["verb"],
            about.get("group", ""),
            about["resource"] + part,
            about.get("namespace", ""),
            about.get("name", ""),
        )
        review["status"] = {"allowed": self.authorizer.allows(asked)}
        return web.json_response(review, status=201)


def _verb_of(request: web.BaseRequest, place: Place) -> str:
    match request.method, bool(place.name):
        case "GET", _ if request.rel_url.query.get("watch") in ("true", "1"):
            return "watch"
        case "GET", named:
            return "get" if named else "list"
        case method, _:
            return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
