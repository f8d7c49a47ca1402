"""Bindings: a scheduler's word that a pod belongs to a node.

Source: Kubernetes API reference, "Binding"; what refuses one is what Kubernetes' server refuses.
"""

from vcjob.api.kinds import POD
from vcjob.api.schema.meta import OBJECT_META
from vcjob.api.schema.types import TEXT, record, required
from vcjob.api.types import Object
from vcjob.core.times import timestamp
from vcjob.local.apiserver import query
from vcjob.local.apiserver.bodies import Body
from vcjob.local.apiserver.orders import decode_order, named
from vcjob.local.apiserver.paths import Place
from vcjob.local.apiserver.query import Query
from vcjob.local.apiserver.schemas.parts import OBJECT_REFERENCE
from vcjob.local.apiserver.status import Refused, Written
from vcjob.local.store import Store

_BINDING = record(
    "Binding",
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": OBJECT_META,
        "target": required(OBJECT_REFERENCE),
    },
    keeps_unknown=True,
)


async def bind(store: Store, place: Place, asked: Query, body: Body, now: float) -> Written:
    """Give a pod the node that a Binding names; raises Refused, NotFound, Conflict.

    ``now`` is in seconds since 1970.
    """
    binding = named(decode_order(body, _BINDING), place.name)
    metadata, target = binding.get("metadata") or {}, binding["target"]
    if target.get("kind", "Node") != "Node" or not target.get("name"):
        raise Refused(422, "target must name an object of kind Node")
    pod = await store.get(POD, place.namespace, place.name)
    if reason := _unfit(pod):
        raise Refused(
            409, f'Operation cannot be fulfilled on pods/binding "{place.name}": {reason}'
        )
    if not query.is_dry_run(asked):
        where = (POD, place.namespace, place.name)
        uid = str(metadata.get("uid") or pod["metadata"]["uid"])
        # The condition comes first: with the node's name the node takes the pod over.
        status = {"status": {"conditions": _scheduled(pod, now)}}
        await store.patch(*where, status, subresource="status", uid=uid)
        await store.patch(*where, {"spec": {"nodeName": target["name"]}}, uid=uid)
    done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Written(done, 201, is_status=True)


def _unfit(pod: Object) -> str:
    name = pod["metadata"]["name"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _scheduled(pod: Object, now: float) -> list[Object]:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    mark = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(now)}
    return [*(one for one in conditions if one["type"] != "PodScheduled"), mark]
