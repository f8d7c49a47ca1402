"""Carrying out a Plan, stage by stage; every write comes back into the records at once.

A stage that fails ends the pass: the next plan starts from what is there then. What stands in a
Job's way (a foreign object, a quota) becomes its trouble, which the next plan tells.
"""

import logging
from collections.abc import Callable

from vcjob.api.kinds import COMMAND, JOB, POD, POD_GROUP, Kind
from vcjob.api.names import OUT_OF_SYNC
from vcjob.api.types import Object
from vcjob.controller.cluster import (
    AlreadyExists,
    Cluster,
    ClusterError,
    Conflict,
    EventType,
    Forbidden,
    Invalid,
    NotFound,
)
from vcjob.controller.parallel import for_each
from vcjob.controller.record import Record
from vcjob.controller.records import Records
from vcjob.core.blueprint import Blueprint
from vcjob.core.facts import PodFacts, pod_facts
from vcjob.core.observed import Slot
from vcjob.core.plan import Plan
from vcjob.core.reasons import Trouble
from vcjob.core.supporting import Create, Remove, Repair, Step, subset_patch
from vcjob.core.surroundings import taken_name
from vcjob.plugins.base import PluginError

_AT_ONCE = 16
"""Calls to the cluster under way for one Job."""

_log = logging.getLogger(__name__)


class InTheWay(Exception):
    """Something keeps a Job from going on. ``obstacle`` is the object, if it is one."""

    def __init__(self, trouble: Trouble, obstacle: tuple[Kind, str, str] | None = None) -> None:
        super().__init__(trouble.told)
        self.trouble = trouble
        self.obstacle = obstacle


class Applier:
    """Carries out Plans on a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        adapt_pod: Callable[[Object], Object] = lambda pod: pod,
    ) -> None:
        """``adapt_pod`` makes of each pod what is created; it must not change what it gets."""
        self._cluster = cluster
        self._records = records
        self._adapt_pod = adapt_pod

    async def decide(self, record: Record, plan: Plan) -> InTheWay | None:
        """Carry out a Plan up to its record; raises ClusterError before anything is recorded.

        Returns what stands in the way of the rest: what was decided is recorded all the same.
        """
        metadata = record.there["metadata"]
        obstructed: InTheWay | None = None
        if plan.amend is not None:
            place = _place_of(record.there)
            stored = await self._cluster.patch(JOB, *place[:2], plan.amend, uid=place[2])
            self._records.take(JOB, EventType.MODIFIED, stored)
        try:
            for step in plan.ensure:
                await self._take_step(step, metadata["uid"])
        except InTheWay as found:
            obstructed = found
        if plan.record is not None:
            await self._record(record, plan.record)
        for slot in plan.heard:
            record.observed.attention.discard(slot)
        for slot, facts in plan.noted.items():
            if record.observed.gone.get(slot) is facts:
                del record.observed.gone[slot]
        return obstructed

    async def act(
        self, record: Record, plan: Plan, blueprint: Blueprint, obstructed: InTheWay | None
    ) -> None:
        """Carry out the rest of a Plan; raises InTheWay (also ``obstructed``), ClusterError.

        ``tell`` is left to the caller, whatever this raises: it is about what is recorded.
        """
        for command in plan.handled_commands:
            await self._delete(Remove(COMMAND, *_place_of(command)))
        if plan.remove_group:
            await self._delete(plan.remove_group)
        await self._remove_pods(record, plan, record.there["metadata"]["namespace"])
        if obstructed:
            raise obstructed
        await self._create_pods(record, plan, blueprint)

    async def drop_commands(self, record: Record) -> None:
        """Take away Commands for a Job that is gone, as nobody else would; raises ClusterError."""
        for command in list(record.commands.values()):
            namespace, name, uid = _place_of(command)
            job = command["target"].get("name")
            if job and await self._is_there(JOB, namespace, job, record.uid):
                return  # its news are on their way
            _log.info("Command %s/%s is for a Job that is gone: removed", namespace, name)
            await self._delete(Remove(COMMAND, namespace, name, uid))

    async def _take_step(self, step: Step, owner: str) -> None:
        try:
            match step:
                case Create(kind, obj):
                    await self._create(kind, obj, owner)
                case Repair(kind, namespace, name, uid, patch):
                    stored = await self._cluster.patch(kind, namespace, name, patch, uid=uid)
                    self._records.take(kind, EventType.MODIFIED, stored)
                case Remove():
                    await self._delete(step)
        except NotFound:
            if isinstance(step, Repair):
                self._records.is_gone(step.kind, step.namespace, step.name)
            raise
        except (Forbidden, Invalid) as error:
            reason = "PodGroupError" if step.kind == POD_GROUP else f"{step.kind}Error"
            raise InTheWay(Trouble(reason, str(error))) from error

    async def _record(self, record: Record, patch: Object) -> None:
        metadata = record.there["metadata"]
        try:
            stored = await self._cluster.patch(
                JOB,
                metadata["namespace"],
                metadata["name"],
                {"status": patch},
                subresource="status",
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        except Conflict:
            await self._look_again(record)
            raise
        self._records.take(JOB, EventType.MODIFIED, stored, quietly=True)  # the plan knew it

    async def _look_again(self, record: Record) -> None:
        """Somebody changed the Job meanwhile: read it, rather than wait for its watch event."""
        metadata = record.there["metadata"]
        try:
            obj = await self._cluster.get(JOB, metadata["namespace"], metadata["name"])
        except NotFound:
            return  # the watch will tell
        self._records.take(JOB, EventType.MODIFIED, obj)

    async def _delete(self, what: Remove) -> None:
        try:
            await self._cluster.delete(what.kind, what.namespace, what.name, uid=what.uid)
        except (NotFound, Conflict):
            if await self._is_there(what.kind, what.namespace, what.name, what.uid):
                raise

    async def _is_there(self, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        """Whether an object is there after all, read anew; that it is gone need not be an error."""
        try:
            present = await self._cluster.get(kind, namespace, name)
        except NotFound:
            return False
        self._records.take(kind, EventType.MODIFIED, present)
        return bool(present["metadata"]["uid"] == uid)

    async def _create(self, kind: Kind, obj: Object, owner: str) -> None:
        try:
            stored = await self._cluster.create(kind, obj)
        except AlreadyExists as error:
            stored = await self._find_present(kind, obj, owner, error)
        self._records.take(kind, EventType.MODIFIED, stored)

    async def _find_present(
        self, kind: Kind, obj: Object, owner: str, error: AlreadyExists
    ) -> Object:
        """The object that is there already, if it is the Job's own; else raises InTheWay."""
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        try:
            present = await self._cluster.get(kind, namespace, name)
        except NotFound as gone:
            raise Conflict(f"{kind} {namespace}/{name} came and went") from gone
        controller = _controller_of(present)
        uid = controller.get("uid", "")
        if uid == owner:
            return await self._seen_again(present, obj) if kind == POD else present
        trouble = taken_name(
            kind,
            name,
            controller,
            _controller_of(obj)["name"],
            left_over=_is_job(controller) and uid not in self._jobs_present(),
            leaving=bool(present["metadata"].get("deletionTimestamp")),
        )
        raise InTheWay(trouble, (kind, namespace, name)) from error

    async def _seen_again(self, present: Object, wanted: Object) -> Object:
        """The Job's own pod, which we did not see: with the labels by which we follow pods.

        Raises InTheWay if its annotations do not tell its place, version and retry: what it is
        for cannot be told by its name.
        """
        metadata = present["metadata"]
        place = (POD, metadata["namespace"], metadata["name"])
        if pod_facts(present) is None:
            message = (
                f"Pod {metadata['name']} belongs to this Job, but the annotations that tell what "
                "it is for were taken away or changed: delete it, and it is made anew"
            )
            raise InTheWay(Trouble("PodUnknown", message), place)
        labels = subset_patch(metadata.get("labels") or {}, wanted["metadata"]["labels"])
        if not labels:
            return present
        patch = {"metadata": {"labels": labels}}
        return await self._cluster.patch(*place, patch, uid=metadata["uid"])

    def _jobs_present(self) -> set[str]:
        return {uid for uid, record in self._records.by_uid.items() if record.obj}

    async def _remove_pods(self, record: Record, plan: Plan, namespace: str) -> None:
        async def remove(facts: PodFacts) -> None:
            slot = (facts.task, facts.index)
            if record.removing.get(slot) == facts.uid:
                return
            try:
                if facts.version >= plan.version and not facts.marked:
                    await self._mark(facts, namespace)
                await self._cluster.delete(POD, namespace, facts.name, uid=facts.uid)
            except (NotFound, Conflict):
                if await self._is_there(POD, namespace, facts.name, facts.uid):
                    raise
                record.observed.remove(facts)  # the watch is late
            else:
                record.removing[slot] = facts.uid

        _raise_first(await for_each(plan.remove, remove, at_once=_AT_ONCE))

    async def _mark(self, facts: PodFacts, namespace: str) -> None:
        """Say of a pod, where its version does not, that its end is a controller's doing.

        Volcano's controller writes the same, and reads it should it take the Job over.
        """
        mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
        stored = await self._cluster.patch(POD, namespace, facts.name, mark, uid=facts.uid)
        self._records.take(POD, EventType.MODIFIED, stored)

    async def _create_pods(self, record: Record, plan: Plan, blueprint: Blueprint) -> None:
        async def create(slot: Slot) -> None:
            try:
                pod = self._adapt_pod(blueprint.pod(*slot, plan.version, plan.retry))
            except PluginError as error:
                raise InTheWay(Trouble("PluginError", str(error))) from error
            try:
                await self._create(POD, pod, record.uid)
            except (Forbidden, Invalid) as error:
                name = pod["metadata"]["name"]
                message = f"pod {name} cannot be created: {error}"
                raise InTheWay(Trouble("FailedCreate", message)) from error

        _raise_first(await for_each(plan.create, create, at_once=_AT_ONCE))


def _raise_first(failures: list[Exception]) -> None:
    """Raise what matters most: a fault of ours, then what the cluster refused, then the rest."""
    if not failures:
        return
    faults = [error for error in failures if not isinstance(error, ClusterError | InTheWay)]
    obstacles = [error for error in failures if isinstance(error, InTheWay)]
    raise (faults or sorted(obstacles, key=str) or failures)[0]


def _place_of(obj: Object) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


def _controller_of(obj: Object) -> Object:
    """The reference to the owner that controls an object, empty if none does."""
    owners: list[Object] = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def _is_job(owner: Object) -> bool:
    return owner.get("kind") == JOB.kind and owner.get("apiVersion") == JOB.api_version
