"""Namespaces: objects are made only in one that exists, and go with it.

Source: Kubernetes documentation, "Namespaces" and "Using Finalizers".
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from vcjob.api.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, EventType, Gone, NotFound
from vcjob.local.apiserver.status import Refused, not_found, qualified
from vcjob.local.store import Store

PERMANENT = ("default", "kube-system")
_CONTENT = "kubernetes"  # the finalizer that stands for what is in a namespace

Kinds = Callable[[], Awaitable[Sequence[Kind]]]
"""The namespaced kinds that there are."""


class Namespaces:
    """What is done about namespaces beside storing them. ``close`` ends what it does."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self._emptying: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Go on with what an earlier server left: default ServiceAccounts, and deletions."""
        for namespace in (await self._store.list(NAMESPACE)).items:
            await self.created(namespace)
            if namespace["metadata"].get("deletionTimestamp"):
                self._empty(namespace["metadata"]["name"])

    async def close(self) -> None:
        """Stop emptying namespaces; ``start`` goes on with it."""
        tasks = list(self._emptying.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse to create in a namespace that does not exist (404) or is being deleted (403)."""
        try:
            found = await self._store.get(NAMESPACE, "", namespace)
        except NotFound as error:
            raise not_found(NAMESPACE, namespace) from error
        if found["metadata"].get("deletionTimestamp"):
            raise Refused(
                403,
                f'{qualified(kind)} "{name}" is forbidden: unable to create new content in '
                f"namespace {namespace} because it is being terminated",
            )

    async def created(self, namespace: Object) -> None:
        """Give a namespace what every namespace has: a ServiceAccount, and a phase."""
        name = namespace["metadata"]["name"]
        account = {"metadata": {"name": "default", "namespace": name}}
        with contextlib.suppress(AlreadyExists):
            await self._store.create(SERVICE_ACCOUNT, account)
        if not (namespace.get("status") or {}).get("phase"):
            await self._store.modify(NAMESPACE, "", name, _active, subresource="status")

    async def delete(self, name: str, *, uid: str, resource_version: str, dry_run: bool) -> Object:
        """Delete a namespace once all that is in it is gone; returns it, marked as deleted."""
        if name in PERMANENT:
            raise Refused(
                403, f'namespaces "{name}" is forbidden: this namespace may not be deleted'
            )
        if not dry_run:
            await self._store.modify(
                NAMESPACE, "", name, _kept, uid=uid, resource_version=resource_version
            )
            await self._store.modify(NAMESPACE, "", name, _terminating, subresource="status")
            resource_version = ""
        left = await self._store.delete(
            NAMESPACE, "", name, uid=uid, resource_version=resource_version, dry_run=dry_run
        )
        if not dry_run:
            self._empty(name)
        return left

    def _empty(self, name: str) -> None:
        if name not in self._emptying:
            task = asyncio.create_task(self._remove_content(name))
            self._emptying[name] = task
            task.add_done_callback(lambda _: self._emptying.pop(name, None))

    async def _remove_content(self, name: str) -> None:
        while True:
            kinds = await self._kinds()
            for kind in kinds:
                await self._delete_all(kind, name)
            left = [kind for kind in kinds if (await self._store.list(kind, name)).items]
            if not left:  # controllers may have made something meanwhile
                break
        with contextlib.suppress(NotFound):
            await self._store.modify(NAMESPACE, "", name, _released)

    async def _delete_all(self, kind: Kind, name: str) -> None:
        """Ask for the deletion of all of a kind in a namespace, and wait until they are gone."""
        while items := (found := await self._store.list(kind, name)).items:
            for obj in items:
                metadata = obj["metadata"]
                if not metadata.get("deletionTimestamp"):
                    with contextlib.suppress(NotFound):  # went with its owner
                        await self._store.delete(kind, name, metadata["name"])
            changes = self._store.follow(kind, found.resource_version, name, lambda obj: True)
            with contextlib.suppress(Gone):
                async for event in changes:
                    if event.type is EventType.DELETED:
                        break


def still_holding(new: Object, old: Object) -> Object:
    """A changed namespace that is not let go of while it has content, whatever a client says.

    On a cluster that finalizer stands in ``spec``, where updates do not reach it.
    """
    metadata = new["metadata"]
    finalizers = metadata.get("finalizers") or []
    if _CONTENT not in (old["metadata"].get("finalizers") or ()) or _CONTENT in finalizers:
        return new
    return {**new, "metadata": {**metadata, "finalizers": [*finalizers, _CONTENT]}}


def _active(namespace: Object) -> Object:
    return {**namespace, "status": {"phase": "Active"}}


def _terminating(namespace: Object) -> Object:
    return {**namespace, "status": {**(namespace.get("status") or {}), "phase": "Terminating"}}


def _kept(namespace: Object) -> Object:
    metadata = namespace["metadata"]
    finalizers = metadata.get("finalizers") or []
    if _CONTENT in finalizers:
        return namespace
    return {**namespace, "metadata": {**metadata, "finalizers": [*finalizers, _CONTENT]}}


def _released(namespace: Object) -> Object:
    metadata = namespace["metadata"]
    finalizers = [item for item in metadata.get("finalizers") or [] if item != _CONTENT]
    return {**namespace, "metadata": {**metadata, "finalizers": finalizers}}
