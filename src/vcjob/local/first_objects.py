"""Objects that are there before any user makes one: this machine's Node, and namespaces."""

import contextlib
import time
from collections.abc import Mapping

from vcjob.api.kinds import NAMESPACE, NODE, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import AlreadyExists, Cluster
from vcjob.local.machine_node import machine_node
from vcjob.local.network.addresses import NODE_ADDRESS

_NAMESPACES = ("default", "kube-system")


async def make_first_objects(cluster: Cluster, name: str, capacity: Mapping[str, str]) -> None:
    """Make them unless an earlier engine has; its Node is made to tell what is so now.

    ``name`` is the Node's, ``capacity`` what pods can have on it together, as quantities.
    """
    node = machine_node(name, capacity, str(NODE_ADDRESS), time.time())
    await _ensure(cluster, NODE, node)
    labels = {"metadata": {"labels": node["metadata"]["labels"]}}
    await cluster.patch(NODE, "", name, labels)
    await cluster.patch(NODE, "", name, {"status": node["status"]}, subresource="status")
    for namespace in _NAMESPACES:
        obj = {
            "apiVersion": NAMESPACE.api_version,
            "kind": NAMESPACE.kind,
            "metadata": {
                "name": namespace,
                "labels": {"kubernetes.io/metadata.name": namespace},
            },
        }
        await _ensure(cluster, NAMESPACE, obj)


async def _ensure(cluster: Cluster, kind: Kind, obj: Object) -> None:
    with contextlib.suppress(AlreadyExists):
        await cluster.create(kind, obj)
