"""One name in one namespace, the Jobs that get it, and all that is around them.

A state machine of Hypothesis without rules: those are ``tests/property/test_lifecycle_machine.py``.
After each rule the promises are looked at, and in the end every Job has to come to its own.
"""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import msgspec
from answers import NOTHING, answer_to
from at_rest import check_numbers, check_rest
from drawn_lives import CLASS, LATE_CLAIM, LATE_CLASS, LATE_QUEUE, NAME, jobs
from faults import Faulty
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from owned import FINAL, has_to_go, is_leaving, is_marked, owner_of, slot_of
from promises import Promises
from simulation import Simulation
from true_reasons import true_reason
from used_retries import uncounted_events, used_retries
from witness import Witness

from vcjob.api.kinds import (
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    QUEUE,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import AlreadyExists, NotFound
from vcjob.core.facts import pod_facts
from vcjob.core.observed import recount
from vcjob.core.state import state_of

IN_THE_WAY = {
    CONFIG_MAP: f"{NAME}-svc",
    SERVICE: NAME,
    SECRET: f"{NAME}-ssh",
    NETWORK_POLICY: NAME,
    POD: f"{NAME}-ps-0",
}


class World(RuleBasedStateMachine):
    """A store and a controller, objects of others, and what of them must hold.

    ``foreign`` are the objects of others as they were made; those not called ``of-others`` are in
    the way of a Job. ``unanswered`` is how many more restarts what has happened so far may lead to,
    ``countable`` how many that use up a retry there may have been in the Job's life.
    """

    status_interval = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.cluster: Any = None
        self.simulation = Simulation(
            wrap=self._faulty, controller_options={"status_interval": self.status_interval}
        )
        self.promises = Promises(self.simulation, self.cluster, NAME)
        self.foreign: list[tuple[Kind, Object]] = self.cluster.foreign
        self.uid = ""
        self.retries = 0
        self.unanswered = 0
        self.countable = 0
        self._replaced_pods = 0

    @property
    def witness(self) -> Witness:
        return self.promises.witness

    def _faulty(self, store: Any) -> Faulty:
        self.cluster = Faulty(store)
        return self.cluster

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(
        job=jobs(),
        in_the_way=st.sampled_from([None] * 30 + [*IN_THE_WAY]),
        runs=st.sampled_from([True, True, True, False]),
    )
    def begin(self, job: Object, in_the_way: Kind | None, runs: bool) -> None:
        async def start() -> None:
            for kind in IN_THE_WAY:
                await self._make_foreign(kind, "of-others")
            if in_the_way:
                await self._make_foreign(in_the_way, IN_THE_WAY[in_the_way])
            await self._make_class(CLASS)
            s = self.simulation
            await s.start()
            self.promises.follow()
            await s.create_job(job)
            await s.settle(finish_pods=False)
            if runs:
                await self.getting_on()

        self.do(start())

    async def getting_on(self) -> None:
        """All goes as it should for a while."""
        s = self.simulation
        await s.finish_terminating()
        await s.settle(finish_pods=False)
        await s.admit()
        await s.settle(finish_pods=False)
        await s.run_pending()

    async def _make_foreign(self, kind: Kind, name: str) -> None:
        body: Object = {"metadata": {"name": name, "namespace": "default"}}
        if kind == POD:
            body["spec"] = {"containers": [{"name": "main", "image": "busybox"}]}
        self.foreign.append((kind, await self.simulation.store.create(kind, body)))

    async def clearing_the_way(self) -> None:
        """What is in the Job's way goes, and what it lacks comes."""
        for kind, obj in self.foreign:
            if obj["metadata"]["name"] != "of-others":
                name = obj["metadata"]["name"]
                await self.simulation.store.delete(kind, "default", name, grace_period_seconds=0)
        self.foreign[:] = [one for one in self.foreign if one[1]["metadata"]["name"] == "of-others"]
        if not await self.simulation.exists(PERSISTENT_VOLUME_CLAIM, LATE_CLAIM):
            claim = {"metadata": {"name": LATE_CLAIM, "namespace": "default"}}
            await self.simulation.store.create(PERSISTENT_VOLUME_CLAIM, claim)
        try:
            await self.simulation.store.get(QUEUE, "", LATE_QUEUE)
        except NotFound:
            queue = {"metadata": {"name": LATE_QUEUE}, "spec": {"weight": 1, "parent": "root"}}
            await self.simulation.store.create(QUEUE, queue)
        await self._make_class(LATE_CLASS)

    async def _make_class(self, name: str) -> None:
        with contextlib.suppress(AlreadyExists):
            await self.simulation.store.create(PRIORITY_CLASS, {"metadata": {"name": name}})

    @invariant()
    def promises_hold(self) -> None:
        self.do(self.simulation.settle(finish_pods=False))
        assert not self.promises.wrong + self.cluster.hurt, self.promises.wrong + self.cluster.hurt
        for kind, obj in self.foreign:
            there = self.do(self.simulation.store.get(kind, "default", obj["metadata"]["name"]))
            assert there is obj, f"{kind} of somebody else was touched"
        self.do(self.witness.rest())
        if self.witness.sees_all:
            self._summary_is_true()
        if job := self.job():
            self._is_true_of(job)

    def may_restart(self, *events: str) -> None:
        """Something happens that leads to a restart if a policy answers one of these events."""
        job = self.job()
        if job and (answered := _restarting(job, {*events})):
            self.unanswered += 1
            self.countable += bool(answered - uncounted_events(job))

    @contextlib.contextmanager
    def answered(self, name: str, event: str = "", exit_code: int = 0) -> Iterator[None]:
        """Look that what happens to a pod in here, and to no other, is answered as it should be.

        Without an ``event`` it is nothing that any policy is for.
        """
        job = self.job() if self._is_calm() else None
        pod = self.do(self.simulation.store.get(POD, "default", name))
        answers = self.promises.course.answers
        before = len(answers)
        yield
        self.do(self.simulation.settle(finish_pods=False))
        if not job or owner_of(pod) != job["metadata"]["uid"]:
            return
        if is_leaving(pod) or is_marked(pod) or has_to_go(pod, job, ended=False):
            return
        answer, at_once = answer_to(job, slot_of(pod)[0], event, exit_code)
        expected = [answer] if event and at_once and answer != NOTHING else []
        assert answers[before:][:1] == expected, (event, exit_code, answers[before:], expected)

    def _is_calm(self) -> bool:
        """Whether the next thing to happen is the only one that may be answered."""
        job = self.job()
        if not job or not self.witness.sees_all or self.cluster.fault or is_leaving(job):
            return False
        record = self.simulation.controller.records.by_uid[job["metadata"]["uid"]]  # type: ignore[union-attr]
        if record.trouble or record.failures or state_of(Job.of(job)).timers:
            return False
        return job["status"]["state"]["phase"] in ("Pending", "Running")

    def orders(self, action: str) -> None:
        """Somebody sends a Command."""
        self.unanswered += 1
        self.countable += action.startswith("Restart")

    def begins(self) -> None:
        """A new Job is made."""
        self.retries = self.unanswered = self.countable = 0

    def _summary_is_true(self) -> None:
        """The summary that planning reads is that of the pods in the store."""
        pods = self.do(self.simulation.pods())
        for uid, record in self.simulation.controller.records.by_uid.items():  # type: ignore[union-attr]
            kept = record.observed.pods
            assert recount(kept.values()).tasks == record.observed.tasks
            there = {
                (facts.task, facts.index): facts
                for pod in pods
                if owner_of(pod) == uid and (facts := pod_facts(pod))
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
        for _ in range(self.witness.pods_made):
            self.may_restart("PodPending")
        self.witness.pods_made = 0
        for _ in range(self.cluster.replaced[POD] - self._replaced_pods):
            self.may_restart("PodEvicted")
        self._replaced_pods = self.cluster.replaced[POD]
        if job["metadata"]["uid"] != self.uid:
            self.uid, self.retries = job["metadata"]["uid"], 0
        retries = status.get("retryCount", 0)
        gained, self.retries = retries - self.retries, retries
        assert gained <= self.unanswered, "a retry was counted twice"
        assert used_retries(job) <= self.countable, "a restart used up a retry that was free"
        self.unanswered -= gained
        controller = self.simulation.controller
        if not controller or not self.witness.sees_all or is_leaving(job):
            return
        record = controller.records.by_uid.get(job["metadata"]["uid"])
        if not record or record.failures or record.trouble:
            return  # it is tried again later
        if status["state"]["phase"] != "Restarting":
            pods = self.do(self.witness.pods_of(job["metadata"]["uid"]))
            ending = sum(is_leaving(pod) for pod in pods)
            timers = state_of(Job.of(job)).timers
            self.unanswered = sum(one.action.startswith("Restart") for one in timers)
            self.unanswered += ending * bool(_restarting(job, {"PodEvicted"}))
        if record.repairs.wait(self.simulation.clock.steady()):
            return  # what somebody deletes again and again comes back a little later
        if not record.pace.wait(self.simulation.clock.steady(), self.status_interval):
            self.do(check_numbers(self.promises, job))
        self.do(check_rest(self.promises, job))

    def teardown(self) -> None:
        try:
            if self.simulation.store.version:
                self.do(self._to_the_end())
        finally:
            self.close()

    def close(self) -> None:
        """Leave everything as it is."""
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
        await true_reason(self.simulation, self.promises, self.foreign)
        await self.clearing_the_way()
        await self._work()
        assert not self.promises.wrong, self.promises.wrong
        told = await true_reason(self.simulation, self.promises, self.foreign)
        assert told in ("", "DependsOn", "MinAvailable"), f"nothing is in its way, but {told}"

    async def _work(self) -> None:
        s = self.simulation
        for _ in range(30):
            await s.settle()
            await s.run_all()
            await self.witness.rest()
            for name in await self.names("Unknown"):  # its node is back
                await s.run_pod(name)
            await s.end_running()
            await s.advance(100)
            if (await self._phase()) in (*FINAL, "Aborted", ""):
                return

    async def _phase(self) -> str:
        there = await self.simulation.exists(JOB, NAME)
        return await self.simulation.phase(NAME) if there else ""

    async def _stop(self) -> None:
        self.promises.stop()
        if self.simulation.controller:
            await self.simulation.crash()

    def job(self) -> Object | None:
        try:
            found: Object = self.do(self.simulation.job(NAME))
        except NotFound:
            return None
        return found

    def pods_in(self, *phases: str) -> list[str]:
        found: list[str] = self.do(self.names(*phases))
        return found

    async def names(self, *phases: str) -> list[str]:
        """Names of Jobs' pods that are in one of these phases."""
        return sorted(
            pod["metadata"]["name"]
            for pod in await self.simulation.pods()
            if pod["status"]["phase"] in phases and pod["metadata"].get("ownerReferences")
        )

    def some_pod(self, data: st.DataObject, *phases: str) -> str:
        """One of the pods in these phases, or none."""
        names = self.pods_in(*phases)
        return data.draw(st.sampled_from(names)) if names else ""


def _restarting(job: Object, events: set[str]) -> set[str]:
    """The ones of these events that a policy of the Job answers with a restart.

    ``exitCode`` stands for policies that name one, which answer a failure.
    """
    found: set[str] = set()
    for part in (job["spec"], *job["spec"]["tasks"]):
        for policy in part.get("policies", ()):
            named = {*policy.get("events", ()), policy.get("event"), *policy.keys() & {"exitCode"}}
            if policy["action"].startswith("Restart"):
                found |= events if "*" in named else events & named
    return {"PodFailed" if event == "exitCode" else event for event in found}
