"""Random lives of Jobs: whatever users, nodes, crashes and faults do, the promises hold.

The promises (issue and docs/lifecycle.md): never more pods than replicas; no pod of an old attempt
beside a new one, and none is deleted that nobody ordered to go; what pods need is there before
them, and while they run; what belongs to others is left alone; counters are true; keys are made
once for a Job; a retry is counted once; final phases are final; every Job ends or says what it
waits for; the kept summary equals a recount. Jobs are drawn in ``tests/support/drawn_lives.py``,
promises are looked at in ``tests/support/promises.py``.
"""

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from drawn_lives import LATE_CLAIM, LATE_QUEUE, NAME, actions, jobs
from faults import Fault, Faulty
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from promises import FINAL, Promises
from simulation import Simulation

from vcjob.api.kinds import (
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    QUEUE,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.names import SUSPEND
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import NotFound
from vcjob.core.facts import pod_facts
from vcjob.core.observed import recount
from vcjob.core.state import state_of

SCHEDULES = 60
LONG_SCHEDULES = 10_000
IN_THE_WAY = {
    CONFIG_MAP: f"{NAME}-svc",
    SERVICE: NAME,
    SECRET: f"{NAME}-ssh",
    NETWORK_POLICY: NAME,
    POD: f"{NAME}-ps-0",
}
SUPPORTING = [CONFIG_MAP, SERVICE, SECRET, NETWORK_POLICY, POD_GROUP]


class Lives(RuleBasedStateMachine):
    """One name in one namespace, and everything that may happen to the Jobs of that name."""

    status_interval = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.cluster: Any = None
        self.simulation = Simulation(
            wrap=self._faulty, controller_options={"status_interval": self.status_interval}
        )
        self.promises = Promises(self.simulation, self.cluster)
        self.foreign: list[tuple[Kind, Object]] = []
        self.retries = 0
        self.unanswered = 0
        """How many more restarts what has happened so far may lead to."""

    def _faulty(self, store: Any) -> Faulty:
        self.cluster = Faulty(store)
        return self.cluster

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(
        job=jobs(), in_the_way=st.sampled_from([None, None, None, *IN_THE_WAY]), runs=st.booleans()
    )
    def begin(self, job: Object, in_the_way: Kind | None, runs: bool) -> None:
        async def start() -> None:
            for kind in IN_THE_WAY:
                await self._make_foreign(kind, "of-others")
            if in_the_way:
                await self._make_foreign(in_the_way, IN_THE_WAY[in_the_way])
            s = self.simulation
            await s.start()
            self.promises.follow()
            await s.create_job(job)
            await s.settle(finish_pods=False)
            if runs:
                await s.admit()
                await s.settle(finish_pods=False)
                await s.run_pending()

        self.do(start())

    async def _make_foreign(self, kind: Kind, name: str) -> None:
        body: Object = {"metadata": {"name": name, "namespace": "default"}}
        if kind == POD:
            body["spec"] = {"containers": [{"name": "main", "image": "busybox"}]}
        self.foreign.append((kind, await self.simulation.store.create(kind, body)))

    @rule()
    def clear_the_way(self) -> None:
        self.do(self._clear_the_way())

    async def _clear_the_way(self) -> None:
        """What is in the Job's way goes, and what it lacks comes."""
        for kind, obj in self.foreign:
            if obj["metadata"]["name"] != "of-others":
                name = obj["metadata"]["name"]
                await self.simulation.store.delete(kind, "default", name, grace_period_seconds=0)
        self.foreign = [one for one in self.foreign if one[1]["metadata"]["name"] == "of-others"]
        if not await self.simulation.exists(PERSISTENT_VOLUME_CLAIM, LATE_CLAIM):
            claim = {"metadata": {"name": LATE_CLAIM, "namespace": "default"}}
            await self.simulation.store.create(PERSISTENT_VOLUME_CLAIM, claim)
        try:
            await self.simulation.store.get(QUEUE, "", LATE_QUEUE)
        except NotFound:
            queue = {"metadata": {"name": LATE_QUEUE}, "spec": {"weight": 1, "parent": "root"}}
            await self.simulation.store.create(QUEUE, queue)

    @rule()
    def admit(self) -> None:
        self.do(self.simulation.admit())

    @rule()
    def unknown_group(self) -> None:
        self.unanswered += 1
        self.do(self.simulation.admit("Unknown"))

    @rule()
    def run_all(self) -> None:
        self.do(self.simulation.run_pending())

    @rule(data=st.data())
    def run_one(self, data: st.DataObject) -> None:
        if name := self._some_pod(data, "Pending"):
            self.do(self.simulation.run_pod(name))

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 3]))
    def end_one(self, data: st.DataObject, code: int) -> None:
        if name := self._some_pod(data, "Running"):
            self.unanswered += 1
            self.do(self.simulation.end_pod(name, code))

    @rule(code=st.sampled_from([0, 0, 0, 1]))
    def end_all(self, code: int) -> None:
        for name in self._pods_in("Running"):
            self.unanswered += 1
            self.do(self.simulation.end_pod(name, code))

    @rule(data=st.data(), how=st.sampled_from(["evict_pod", "preempt_pod", "lose_node"]))
    def disturb(self, data: st.DataObject, how: str) -> None:
        if name := self._some_pod(data, "Pending", "Running"):
            self.unanswered += 1
            self.do(getattr(self.simulation, how)(name))

    @rule(data=st.data(), count=st.integers(1, 4))
    def restart_containers(self, data: st.DataObject, count: int) -> None:
        if name := self._some_pod(data, "Running"):
            self.unanswered += 1
            self.do(self.simulation.restart_containers(name, count))

    @rule(data=st.data())
    def delete_one(self, data: st.DataObject) -> None:
        if name := self._some_pod(data, "Pending", "Running", "Succeeded", "Failed", "Unknown"):
            self.unanswered += 1
            self.do(self.simulation.delete_pod(name))

    @rule(data=st.data())
    def clean_up(self, data: st.DataObject) -> None:
        """Somebody takes away a pod that has done its work."""
        if name := self._some_pod(data, "Succeeded"):
            self.unanswered += 1
            self.do(self.simulation.store.delete(POD, "default", name, grace_period_seconds=0))

    @rule()
    def finish_terminating(self) -> None:
        self.do(self.simulation.finish_terminating())

    @rule(data=st.data())
    def finish_one(self, data: st.DataObject) -> None:
        names = sorted(
            pod["metadata"]["name"]
            for pod in self.do(self.simulation.pods())
            if "deletionTimestamp" in pod["metadata"]
        )
        if names:
            name = data.draw(st.sampled_from(names))
            self.do(self.simulation.store.delete(POD, "default", name, grace_period_seconds=0))

    @precondition(lambda self: self._job())
    @rule(action=actions)
    def command(self, action: str) -> None:
        self.unanswered += 1
        self.do(self.simulation.command(NAME, action))

    @precondition(lambda self: self._job())
    @rule()
    def restart_and_admit(self) -> None:
        """The next attempt is admitted while pods of the last one are still ending."""

        async def both() -> None:
            await self.simulation.command(NAME, "RestartJob")
            await self.simulation.settle(finish_pods=False)
            await self.simulation.admit()

        self.unanswered += 1
        self.do(both())

    @precondition(lambda self: self._job())
    @rule(suspended=st.sampled_from(["true", None]))
    def suspend(self, suspended: str | None) -> None:
        patch = {"metadata": {"annotations": {SUSPEND: suspended}}}
        self.do(self.simulation.patch_job(NAME, patch))

    @precondition(lambda self: self._job())
    @rule(data=st.data(), replicas=st.integers(0, 4))
    def scale(self, data: st.DataObject, replicas: int) -> None:
        tasks = [dict(task) for task in self._job()["spec"]["tasks"]]
        task = data.draw(st.sampled_from(tasks))
        task["replicas"] = replicas
        task["minAvailable"] = min(task.get("minAvailable", 0), replicas)
        least = sum(task["minAvailable"] for task in tasks)
        patch = {"spec": {"tasks": tasks, "minAvailable": least}}
        self.unanswered += 1  # a task may be complete now
        self.do(self.simulation.patch_job(NAME, patch))

    @precondition(lambda self: self._job())
    @rule(again=jobs())
    def delete_and_create(self, again: Object) -> None:
        async def both() -> None:
            await self.simulation.store.delete(JOB, "default", NAME)
            await self.simulation.create_job(again)

        self.retries = self.unanswered = 0
        self.do(both())

    @precondition(lambda self: self._job())
    @rule()
    def delete_job(self) -> None:
        self.do(self.simulation.store.delete(JOB, "default", NAME))

    @precondition(lambda self: not self._job())
    @rule(again=jobs())
    def create_job(self, again: Object) -> None:
        self.retries = self.unanswered = 0
        self.do(self.simulation.create_job(again))

    @rule(kind=st.sampled_from(SUPPORTING))
    def delete_supporting(self, kind: Kind) -> None:
        self.promises.secrets_deleted += kind == SECRET

        async def delete() -> None:
            for obj in (await self.simulation.store.list(kind)).items:
                if obj["metadata"].get("ownerReferences"):
                    await self.simulation.store.delete(kind, "default", obj["metadata"]["name"])

        self.do(delete())

    @rule(seconds=st.sampled_from([0.1, 6.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.do(self.simulation.advance(seconds, finish_pods=False))

    @rule(fault=st.sampled_from(Fault), at=st.integers(0, 8))
    def arm(self, fault: Fault, at: int) -> None:
        event(str(fault))
        self.cluster.arm(fault, at)

    @rule()
    def crash(self) -> None:
        """The controller dies; a new one starts now or later, and much may happen meanwhile."""
        if self.simulation.controller:
            self.do(self.simulation.crash())

    @precondition(lambda self: not self.simulation.controller)
    @rule()
    def start_again(self) -> None:
        self.do(self.simulation.start())

    @rule()
    def crash_and_start(self) -> None:
        self.crash()
        self.start_again()

    @rule(held=st.booleans(), repeating=st.booleans())
    def misbehave(self, held: bool, repeating: bool) -> None:
        self.cluster.repeating = repeating
        self.cluster.hold(held)

    @invariant()
    def promises_hold(self) -> None:
        self.do(self.simulation.settle(finish_pods=False))
        assert not self.promises.wrong, self.promises.wrong
        for kind, obj in self.foreign:
            there = self.do(self.simulation.store.get(kind, "default", obj["metadata"]["name"]))
            assert there is obj, f"{kind} of somebody else was touched"
        self.do(self.promises.rest())
        if self.promises.sees_all:
            self._summary_is_true()
        if job := self._job():
            self._is_true_of(job)

    def _summary_is_true(self) -> None:
        """The summary that planning reads is that of the pods in the store."""
        pods = self.do(self.simulation.pods())
        for uid, record in self.simulation.controller.records.by_uid.items():  # type: ignore[union-attr]
            kept = record.observed.pods
            assert recount(kept.values()).tasks == record.observed.tasks
            there = {
                (facts.task, facts.index): facts
                for pod in pods
                if pod["metadata"].get("ownerReferences", [{}])[0].get("uid") == uid
                and (facts := pod_facts(pod))
            }
            remembered = {  # that a pod had ended stays known when its deletion is asked for
                slot: msgspec.structs.replace(facts, ended=facts.ended or kept[slot].ended)
                for slot, facts in there.items()
                if slot in kept
            }
            assert kept == {**there, **remembered}

    def _is_true_of(self, job: Object) -> None:
        """What the Job says of itself, and what there is of it."""
        status = job.get("status") or {}
        policies = str(job["spec"])
        if "PodPending" in policies or "'*'" in policies:  # a pod that is made may stay Pending
            self.unanswered += self.promises.pods_made
        self.promises.pods_made = 0
        retries = status.get("retryCount", 0)
        gained, self.retries = retries - self.retries, retries
        assert gained <= self.unanswered, "a retry was counted twice"
        self.unanswered -= gained
        controller = self.simulation.controller
        if not controller or not self.promises.sees_all or "deletionTimestamp" in job["metadata"]:
            return
        record = controller.records.by_uid.get(job["metadata"]["uid"])
        if not record or record.failures or record.trouble:
            return  # it is tried again later
        if status["state"]["phase"] != "Restarting":
            pods = self.do(self.promises.pods_of(job["metadata"]["uid"]))
            ending = sum("deletionTimestamp" in pod["metadata"] for pod in pods)
            self.unanswered = len(state_of(Job.of(job)).timers) + ending
        if not record.pace.wait(self.simulation.clock.steady(), self.status_interval):
            self.do(self.promises.check_numbers(job))
        self.do(self.promises.check_pods(job))

    def teardown(self) -> None:
        try:
            if self.cluster.before_create and self.simulation.store.version:
                self.do(self._to_the_end())
        finally:
            self.do(self._stop())
            self.loop.close()
            gc.collect(1)

    async def _to_the_end(self) -> None:
        """With everybody doing their work, a Job ends, or says truly what it waits for."""
        s = self.simulation
        if not s.controller:
            await s.start()
        self.cluster.hold(False)
        self.cluster.arm(None)
        await self._work()
        await self._says_why_truly()
        await self._clear_the_way()
        await self._work()
        assert not self.promises.wrong, self.promises.wrong
        told = await self._says_why_truly()
        assert told in ("", "DependsOn", "MinAvailable"), f"nothing is in its way, but {told}"

    async def _work(self) -> None:
        s = self.simulation
        for _ in range(30):
            await s.settle()
            await s.run_all()
            await self.promises.rest()
            for name in await self._names("Unknown"):  # its node is back
                await s.run_pod(name)
            await s.end_running()
            await s.advance(100)
            if (await self._phase()) in (*FINAL, "Aborted", ""):
                return

    async def _phase(self) -> str:
        return await self.simulation.phase(NAME) if await self._there() else ""

    async def _there(self) -> bool:
        return await self.simulation.exists(JOB, NAME)

    async def _says_why_truly(self) -> str:
        """The reason of a Job that is still under way, having looked whether it is true."""
        if not await self._there():
            return ""
        job = await self.simulation.job(NAME)
        spec, state = job["spec"], job["status"]["state"]
        if state["phase"] in (*FINAL, "Aborted"):
            return ""
        reason, message = state.get("reason", ""), state.get("message", "")
        if not sum(task["replicas"] for task in spec["tasks"]):
            return ""
        exists = self.simulation.exists
        match reason:
            case "NameTaken":
                names = [(str(kind), obj["metadata"]["name"]) for kind, obj in self.foreign]
                true = any(f"{kind} {name} " in message for kind, name in names)
            case "QueueNotFound":
                true = spec["queue"] == LATE_QUEUE and LATE_QUEUE in message
            case "PVCError":
                true = LATE_CLAIM in message and not await exists(
                    PERSISTENT_VOLUME_CLAIM, LATE_CLAIM
                )
            case "DependsOn":
                true = await self._waits_for_others(job, message)
            case "MinAvailable":
                replicas = sum(task["replicas"] for task in spec["tasks"])
                true = spec["minAvailable"] > replicas or any(
                    task.get("minAvailable", 0) > task["replicas"] for task in spec["tasks"]
                )
            case _:
                true = False
        assert true, f"{state['phase']}: {reason}: {message}"
        return str(reason)

    async def _waits_for_others(self, job: Object, message: str) -> bool:
        """Whether the tasks that are said to wait have no pods, and one they need is not ready."""
        owned = await self.promises.pods_of(job["metadata"]["uid"])
        for task in job["spec"]["tasks"]:
            if f"task {task['name']} waits until" in message:
                if any(f"{NAME}-{task['name']}-" in pod["metadata"]["name"] for pod in owned):
                    return False
                if not all(name in message for name in task["dependsOn"]["name"]):
                    return False
        return "waits until" in message

    async def _stop(self) -> None:
        self.promises.stop()
        if self.simulation.controller:
            await self.simulation.crash()

    def _job(self) -> Object | None:
        try:
            found: Object = self.do(self.simulation.job(NAME))
        except NotFound:
            return None
        return found

    def _pods_in(self, *phases: str) -> list[str]:
        found: list[str] = self.do(self._names(*phases))
        return found

    async def _names(self, *phases: str) -> list[str]:
        """Names of Jobs' pods that are in one of these phases."""
        return sorted(
            pod["metadata"]["name"]
            for pod in await self.simulation.pods()
            if pod["status"]["phase"] in phases and pod["metadata"].get("ownerReferences")
        )

    def _some_pod(self, data: st.DataObject, *phases: str) -> str:
        """One of the pods in these phases, or none."""
        names = self._pods_in(*phases)
        return data.draw(st.sampled_from(names)) if names else ""


class PacedLives(Lives):
    """The same as an operator writes them: what only informs comes late."""

    status_interval = 0.5


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("lives", [Lives, PacedLives])
def test_promises_hold_whatever_happens(lives: type[Lives], is_long: bool) -> None:
    run_state_machine_as_test(
        lives,
        settings=settings(
            max_examples=LONG_SCHEDULES if is_long else SCHEDULES,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
