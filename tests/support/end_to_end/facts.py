"""What a tested cluster has beside its API server, found out by trying.

A bare kube-apiserver has nobody who collects garbage, fills in quotas or makes service accounts;
a cluster of fakes may have somebody who plays every node. What cannot hold there is skipped.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from end_to_end.playing import make_node
from vcjob.api.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    SERVICE_ACCOUNT,
    Kind,
)
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller.cluster import AlreadyExists, EventType, Forbidden, Invalid, NotFound
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.errors import NotServed

RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")

_TURN_SECONDS = 5.0
"""How long somebody may take who is at work; Volcano's scheduler takes one."""
_LEARNING_SECONDS = 60.0
"""How long a garbage collector may take to get to know new kinds; Kubernetes' looks every 30."""


@dataclass(frozen=True)
class Facts:
    """What a cluster has.

    ``scheduler``: one that admits PodGroups. ``group_status``: a status of PodGroups that is
    written by itself. ``quotas``: somebody who fills in ResourceQuotas, without which none is
    enforced. ``accounts``: service accounts; no pod is let in without that of its namespace.
    ``collector``: somebody who deletes what belonged to objects that are gone. ``others_play``:
    somebody who plays the nodes that we play.
    """

    scheduler: bool = False
    group_status: bool = False
    quotas: bool = False
    accounts: bool = False
    collector: bool = False
    others_play: bool = False


async def of_engine(cluster: KubernetesCluster) -> Facts:
    """What an engine has that leaves Jobs, gangs and pods to others: that need not be tried."""
    return Facts(
        group_status=await _has_group_status(cluster),
        accounts=await make_account(cluster, "default"),
        collector=True,
    )


async def ask(cluster: KubernetesCluster, turn: float = _TURN_SECONDS) -> Facts:
    """Ask a server, in a namespace that is taken away again.

    Who does nothing in ``turn`` seconds is not there.
    """
    group_status = await _has_group_status(cluster)
    made = await cluster.create(NAMESPACE, {"metadata": {"generateName": "vcjob-test-"}})
    name = made["metadata"]["name"]
    try:
        accounts = await make_account(cluster, name)
        scheduler, quotas, collector, others_play = await asyncio.gather(
            _has_scheduler(cluster, name, turn),
            _has_quotas(cluster, name, turn),
            _has_collector(cluster, name, 2 * turn),
            _others_play(cluster, name, turn),
        )
    finally:
        await cluster.delete(NAMESPACE, "", name)
    return Facts(scheduler, group_status, quotas, accounts, collector, others_play)


async def make_account(cluster: KubernetesCluster, namespace: str) -> bool:
    """Make a namespace's service account where nobody has; False if the server knows none."""
    account = {"metadata": {"name": "default", "namespace": namespace}}
    try:
        await cluster.create(SERVICE_ACCOUNT, account)
    except AlreadyExists:
        pass
    except NotServed:
        return False
    return True


async def wait_for_quota(cluster: KubernetesCluster, namespace: str, name: str) -> None:
    """Wait until a ResourceQuota is filled in: until then it lets nothing in, in other words."""

    def is_filled(_: EventType, quota: Object) -> bool:
        filled = (quota.get("status") or {}).get("hard")
        return bool(quota["metadata"]["name"] == name and filled)

    await _until(cluster, RESOURCE_QUOTA, namespace, is_filled)


async def _has_group_status(cluster: KubernetesCluster) -> bool:
    name = f"{POD_GROUP.plural}.{POD_GROUP.group}"
    groups = await cluster.get(CUSTOM_RESOURCE_DEFINITION, "", name)
    [version] = [v for v in groups["spec"]["versions"] if v["name"] == POD_GROUP.version]
    return "status" in (version.get("subresources") or {})


async def _has_scheduler(cluster: KubernetesCluster, namespace: str, turn: float) -> bool:
    """Whether somebody says something about a PodGroup that nothing stands in the way of."""
    group = {"metadata": {"name": "any", "namespace": namespace},
             "spec": {"minMember": 1, "queue": "default"}}  # fmt: skip
    try:
        await cluster.create(POD_GROUP, group)
    except (Forbidden, Invalid):  # a webhook wants a queue that a scheduler would have made
        return False
    return await _comes(
        cluster, POD_GROUP, namespace, lambda group: (group.get("status") or {}).get("phase"), turn
    )


async def _has_quotas(cluster: KubernetesCluster, namespace: str, turn: float) -> bool:
    quota = {"metadata": {"name": "any", "namespace": namespace},
             "spec": {"hard": {"count/services": "100"}}}  # fmt: skip
    try:
        await cluster.create(RESOURCE_QUOTA, quota)
    except NotServed:
        return False
    return await _in_time(wait_for_quota(cluster, namespace, "any"), turn)


async def _has_collector(cluster: KubernetesCluster, namespace: str, turn: float) -> bool:
    """Whether what belongs to an object goes with it; waits until also new kinds are known."""
    if not await _collects(cluster, namespace, CONFIG_MAP, {}, turn):
        return False
    spec = {"spec": {"minMember": 1}}
    try:
        return await _collects(cluster, namespace, POD_GROUP, spec, _LEARNING_SECONDS)
    except (Forbidden, Invalid):  # a webhook wants a queue: kinds are known then
        return True


async def _collects(
    cluster: KubernetesCluster, namespace: str, kind: Kind, spec: Object, patience: float
) -> bool:
    name = f"owner-{kind.plural}"
    owner = await cluster.create(kind, {"metadata": {"name": name, "namespace": namespace}, **spec})
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name,
                 "uid": owner["metadata"]["uid"]}  # fmt: skip
    metadata = {"name": f"of-{name}", "namespace": namespace, "ownerReferences": [reference]}
    belonging = await cluster.create(CONFIG_MAP, {"metadata": metadata})
    await cluster.delete(kind, namespace, name)
    known = {belonging["metadata"]["uid"]: belonging}

    def is_gone(happened: EventType, obj: Object) -> bool:
        return happened is EventType.DELETED and obj["metadata"]["uid"] in known

    gone = _until(cluster, CONFIG_MAP, namespace, is_gone, known)
    return await _in_time(gone, patience)


async def _others_play(cluster: KubernetesCluster, namespace: str, turn: float) -> bool:
    """Whether a pod on a node of ours comes to run without us."""
    await make_node(cluster, namespace)
    try:
        container = {"name": "any", "image": "busybox:1.36"}
        metadata = {"name": "any", "namespace": namespace}
        spec = {"nodeName": namespace, "containers": [container]}
        await cluster.create(POD, {"metadata": metadata, "spec": spec})
        found = await _comes(
            cluster, POD, namespace, lambda pod: pod["status"].get("startTime"), turn
        )
        await cluster.delete(POD, namespace, "any", grace_period_seconds=0)
        return found
    finally:
        await cluster.delete(NODE, "", namespace)


async def _comes(
    cluster: KubernetesCluster,
    kind: Kind,
    namespace: str,
    right: Callable[[Object], Any],
    turn: float,
) -> bool:
    """Whether the object ``any`` gets as it should be while it is somebody's turn."""

    def is_so(_: EventType, obj: Object) -> bool:
        return bool(obj["metadata"]["name"] == "any" and right(obj))

    return await _in_time(_until(cluster, kind, namespace, is_so), turn)


async def _until(
    cluster: KubernetesCluster,
    kind: Kind,
    namespace: str,
    right: Callable[[EventType, Object], bool],
    known: Mapping[str, Object] | None = None,
) -> None:
    """Wait for a change; ``known`` objects are told as DELETED if they are gone already."""
    async with contextlib.aclosing(changes(cluster, kind, namespace, known=known)) as told:
        async for happened, obj in told:
            if right(happened, obj):
                return


async def _in_time(waiting: Awaitable[None], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except (TimeoutError, NotFound):
        return False
    return True
