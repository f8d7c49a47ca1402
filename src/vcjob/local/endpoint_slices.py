"""EndpointSlices of an engine that serves: which pods are behind a Service, for other programs.

Nothing of vcjob reads them; kubectl and operators do. This keeps them as
``endpoint_slice_objects`` says they are to be.
"""

import asyncio
from collections.abc import Callable

from vcjob.api.kinds import ENDPOINT_SLICE, POD, SERVICE, Kind
from vcjob.api.types import Key, Object, key_of
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from vcjob.local.endpoint_slice_objects import (
    MANAGER,
    MANAGER_LABEL,
    SERVICE_LABEL,
    is_as,
    labels_of,
    slices_of,
)
from vcjob.local.following import follow

_TURN_SECONDS = 0.5


class EndpointSlices:
    """Keeps the EndpointSlices of all Services, until cancelled.

    Args:
        cluster: where the objects live.
        on_problem: is told of a slice that the cluster refuses.
        turn_seconds: how long changes are gathered before they are written.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_problem: Callable[[str], None],
        turn_seconds: float = _TURN_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._on_problem = on_problem
        self._turn_seconds = turn_seconds
        self._services: dict[Key, Object] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        # By one pair of a selector: the Services that may select a pod with this label.
        self._selecting: dict[tuple[str, str, str], set[Key]] = {}
        self._slices: dict[Key, set[str]] = {}
        self._unlisted = {SERVICE, POD, ENDPOINT_SLICE}
        self._all_listed = asyncio.Event()
        self._changed: set[Key] = set()
        self._any_changed = asyncio.Event()

    async def run(self) -> None:
        """Follow Services, pods and slices, and write what is to change."""
        async with asyncio.TaskGroup() as tasks:
            for kind, take in (
                (SERVICE, self._take_service),
                (POD, self._take_pod),
                (ENDPOINT_SLICE, self._take_slice),
            ):
                listed = self._when_listed(kind)
                tasks.create_task(follow(self._cluster, kind, take, listed))
            tasks.create_task(self._write())

    def _when_listed(self, kind: Kind) -> Callable[[], None]:
        def listed() -> None:
            self._unlisted.discard(kind)
            if not self._unlisted:
                self._all_listed.set()

        return listed

    def _take_service(self, service: Object, gone: bool) -> None:
        key = key_of(service)
        old = self._services.pop(key, None)
        if old and (lead := _lead(old)):
            self._selecting[lead].discard(key)
            if not self._selecting[lead]:
                del self._selecting[lead]
        if gone:
            return  # its slices are garbage, collected as such
        self._services[key] = service
        if lead := _lead(service):
            self._selecting.setdefault(lead, set()).add(key)
        self._look_at(key)

    def _take_pod(self, pod: Object, gone: bool) -> None:
        namespace, name = key_of(pod)
        pods = self._pods.setdefault(namespace, {})
        old = pods.pop(name, None)
        if not gone:
            pods[name] = pod
        elif not pods:
            del self._pods[namespace]
        for state in (old, pod):
            for label in labels_of(state or pod).items():
                for key in self._selecting.get((namespace, *label), ()):
                    self._look_at(key)

    def _take_slice(self, found: Object, gone: bool) -> None:
        """A slice that somebody deleted or changed is put right."""
        namespace, name = key_of(found)
        owners = found["metadata"].get("ownerReferences") or ()
        services = {owner["name"] for owner in owners if owner.get("kind") == SERVICE.kind}
        if labels_of(found).get(MANAGER_LABEL) == MANAGER:
            services.add(labels_of(found).get(SERVICE_LABEL, ""))
        for service in services:
            names = self._slices.setdefault((namespace, service), set())
            names.discard(name)
            if not gone and labels_of(found).get(MANAGER_LABEL) == MANAGER:
                names.add(name)
            if not names:
                del self._slices[namespace, service]
            self._look_at((namespace, service))

    def _look_at(self, service: Key) -> None:
        self._changed.add(service)
        self._any_changed.set()

    async def _write(self) -> None:
        await self._all_listed.wait()  # before, pods would seem to be gone
        while True:
            await self._any_changed.wait()
            await asyncio.sleep(self._turn_seconds)
            self._any_changed.clear()
            changed, self._changed = self._changed, set()
            for key in changed:
                await self._settle(key)
                await asyncio.sleep(0)

    async def _settle(self, key: Key) -> None:
        service = self._services.get(key)
        if service is None or service["metadata"].get("deletionTimestamp"):
            return
        namespace = key[0]
        wanted = slices_of(service, self._pods.get(namespace, {}).values())
        try:
            for one in wanted:
                await self._put(namespace, one)
            kept = {one["metadata"]["name"] for one in wanted}
            for name in self._slices.get(key, set()) - kept:
                await self._cluster.delete(ENDPOINT_SLICE, namespace, name)
        except (AlreadyExists, Conflict, NotFound):
            self._look_at(key)  # somebody was quicker
        except Forbidden:
            return  # the namespace is being deleted, and the Service with it
        except Invalid as error:
            self._on_problem(f"no EndpointSlice for Service {namespace}/{key[1]}: {error}")

    async def _put(self, namespace: str, wanted: Object) -> None:
        name = wanted["metadata"]["name"]
        try:
            found = await self._cluster.get(ENDPOINT_SLICE, namespace, name)
        except NotFound:
            await self._cluster.create(ENDPOINT_SLICE, wanted)
            return
        if is_as(found, wanted):
            return
        version = found["metadata"]["resourceVersion"]
        await self._cluster.patch(ENDPOINT_SLICE, namespace, name, wanted, resource_version=version)


def _lead(service: Object) -> tuple[str, str, str] | None:
    """One pair of a Service's selector, by which it is found; None without a selector."""
    selector = (service.get("spec") or {}).get("selector")
    return (service["metadata"]["namespace"], *min(selector.items())) if selector else None
