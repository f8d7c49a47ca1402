"""Which container of which pod a request is about, and what stands in the way.

The sentences are those that users know from kubelet and kubectl.
"""

from collections.abc import Callable, Iterable

import msgspec

from vcjob.api.kinds import POD
from vcjob.api.types import Object
from vcjob.controller.cluster import Cluster, NotFound
from vcjob.local.agent.inside import Inside
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.status import Refused, not_found

FindInside = Callable[[str, str], Inside | None]
"""Where programs can enter a container, by its pod's UID and its name; None: it does not run."""


class Target(msgspec.Struct, frozen=True):
    """A container of a pod."""

    pod: Object
    container: Object

    @property
    def uid(self) -> str:
        """The pod's."""
        uid: str = self.pod["metadata"]["uid"]
        return uid

    @property
    def name(self) -> str:
        """The container's."""
        name: str = self.container["name"]
        return name

    @property
    def status(self) -> Object:
        """The container's status, empty before it has one."""
        status = self.pod.get("status") or {}
        for field in ("containerStatuses", "initContainerStatuses"):
            for one in status.get(field) or ():
                if one["name"] == self.name:
                    found: Object = one
                    return found
        return {}


async def pod_at(cluster: Cluster, place: Place) -> Object:
    """The pod that a request names; raises Refused (404)."""
    try:
        return await cluster.get(POD, place.namespace, place.name)
    except NotFound as error:
        raise not_found(POD, place.name) from error


async def target_at(cluster: Cluster, place: Place, container: str) -> Target:
    """The container that a request names, or the only one beside init containers.

    Raises Refused (400, 404).
    """
    pod = await pod_at(cluster, place)
    spec = pod["spec"]
    mains, inits = [*(spec.get("containers") or ())], [*(spec.get("initContainers") or ())]
    if not container:
        if len(mains) != 1:
            raise Refused(400, _choose(place.name, _names(mains), _names(inits)))
        return Target(pod, mains[0])
    for one in (*mains, *inits):
        if one["name"] == container:
            return Target(pod, one)
    raise Refused(400, f"container {container} is not valid for pod {place.name}")


async def inside_of(
    cluster: Cluster, find: FindInside, place: Place, container: str
) -> tuple[Target, Inside]:
    """The running container that a request names; raises Refused (400, 404)."""
    target = await target_at(cluster, place, container)
    inside = find(target.uid, target.name)
    if inside is None:
        phase = (target.pod.get("status") or {}).get("phase") or "Pending"
        raise Refused(
            400,
            f'container "{target.name}" in pod "{place.name}" is not running; the pod is {phase}',
        )
    return target, inside


def _choose(pod: str, mains: str, inits: str) -> str:
    asked = f"a container name must be specified for pod {pod}, choose one of: [{mains}]"
    return f"{asked} or one of the init containers: [{inits}]" if inits else asked


def _names(containers: Iterable[Object]) -> str:
    return " ".join(container["name"] for container in containers)
