"""Random lives of Jobs: whatever users, nodes, crashes and faults do, the promises hold.

The promises (issue and docs/lifecycle.md): never more pods than replicas; no pod of an old attempt
beside a new one, and none is deleted that nobody ordered to go; what pods need is there before
them, and while they run; what belongs to others is left alone; counters are true; keys are made
once for a Job; a retry is counted once; final phases are final; every Job ends or says what it
waits for; the kept summary equals a recount.

Here are the rules: what may happen. Jobs are drawn in ``tests/support/drawn_lives.py``; their world
is ``lives.py`` there, the promises are ``promises.py`` and what it names, and ``true_reasons.py``.
"""

import contextlib

import pytest
from drawn_lives import NAME, actions, jobs
from faults import Fault
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from lives import World

from vcjob.api.kinds import (
    COMMAND,
    CONFIG_MAP,
    JOB,
    NETWORK_POLICY,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
    Kind,
)
from vcjob.api.names import SUSPEND
from vcjob.api.types import Object

SCHEDULES = 300
LONG_SCHEDULES = 10_000
END = {0: ("TaskCompleted",), 1: ("PodFailed", "exitCode"), 3: ("PodFailed", "exitCode")}
"""Events of pods that end with a code; exitCode stands for policies that name one."""
SUPPORTING = [CONFIG_MAP, SERVICE, SECRET, NETWORK_POLICY, POD_GROUP]


class Lives(World):
    """One name in one namespace, and everything that may happen to the Jobs of that name."""

    @rule()
    def get_on(self) -> None:
        """All goes as it should for a while."""
        self.do(self.getting_on())

    @rule()
    def clear_the_way(self) -> None:
        self.do(self.clearing_the_way())

    @rule()
    def admit(self) -> None:
        self.do(self.simulation.admit())

    @rule()
    def unknown_group(self) -> None:
        self.may_restart("Unknown")
        self.do(self.simulation.admit("Unknown"))

    @rule()
    def run_all(self) -> None:
        self.do(self.simulation.run_pending())

    @rule(data=st.data())
    def run_one(self, data: st.DataObject) -> None:
        if name := self.some_pod(data, "Pending"):
            self.do(self.simulation.run_pod(name))

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 3]))
    def end_one(self, data: st.DataObject, code: int) -> None:
        if name := self.some_pod(data, "Running"):
            self.may_restart(*END[code])
            with self.answered(name, "PodFailed", code) if code else contextlib.nullcontext():
                self.do(self.simulation.end_pod(name, code))

    @rule(code=st.sampled_from([0, 0, 0, 1]))
    def end_all(self, code: int) -> None:
        async def end(name: str) -> None:
            if name in await self.names("Running"):  # else the end of one before was its end too
                await self.simulation.end_pod(name, code)

        for name in self.pods_in("Running"):
            self.may_restart(*END[code])
            self.do(end(name))

    @rule(data=st.data(), how=st.sampled_from(["evict_pod", "preempt_pod", "lose_node"]))
    def disturb(self, data: st.DataObject, how: str) -> None:
        if name := self.some_pod(data, "Pending", "Running"):
            self.may_restart("PodEvicted")
            evicted = how != "lose_node"
            with self.answered(name, "PodEvicted") if evicted else contextlib.nullcontext():
                self.do(getattr(self.simulation, how)(name))

    @rule(data=st.data(), count=st.integers(1, 4))
    def restart_containers(self, data: st.DataObject, count: int) -> None:
        if name := self.some_pod(data, "Running"):
            self.may_restart("TaskFailed", "exitCode")
            self.do(self.simulation.restart_containers(name, count))

    @rule(data=st.data())
    def delete_one(self, data: st.DataObject) -> None:
        if name := self.some_pod(data, "Pending", "Running", "Succeeded", "Failed", "Unknown"):
            self.may_restart("PodEvicted")
            self.do(self.simulation.delete_pod(name))

    @rule(data=st.data())
    def end_and_clean_up(self, data: st.DataObject) -> None:
        """A pod does its work, and somebody takes it away."""

        async def end(name: str) -> None:
            await self.simulation.end_pod(name)
            await self.simulation.settle(finish_pods=False)

        if name := self.some_pod(data, "Running"):
            self.may_restart("TaskCompleted")
            if not self.witness.sees_all:  # then nobody saw it succeed
                self.may_restart("PodEvicted")
            self.do(end(name))
            if name in self.pods_in("Succeeded"):  # else a restart was faster
                with self.answered(name):
                    store = self.simulation.store
                    self.do(store.delete(POD, "default", name, grace_period_seconds=0))

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

    @precondition(lambda self: self.job())
    @rule(action=actions)
    def command(self, action: str) -> None:
        self.orders(action)
        self.do(self.simulation.command(NAME, action))

    @precondition(lambda self: self.job())
    @rule()
    def restart_and_admit(self) -> None:
        """The next attempt is admitted while pods of the last one are still ending."""

        async def both() -> None:
            await self.simulation.command(NAME, "RestartJob")
            await self.simulation.settle(finish_pods=False)
            await self.simulation.admit()

        self.orders("RestartJob")
        self.do(both())

    @precondition(lambda self: self.job())
    @rule(suspended=st.sampled_from(["true", None]))
    def suspend(self, suspended: str | None) -> None:
        patch = {"metadata": {"annotations": {SUSPEND: suspended}}}
        self.do(self.simulation.patch_job(NAME, patch))

    @precondition(lambda self: self.job())
    @rule(data=st.data(), replicas=st.integers(0, 4))
    def scale(self, data: st.DataObject, replicas: int) -> None:
        tasks = [dict(task) for task in self.job()["spec"]["tasks"]]
        task = data.draw(st.sampled_from(tasks))
        task["replicas"] = replicas
        task["minAvailable"] = min(task.get("minAvailable", 0), replicas)
        least = sum(task["minAvailable"] for task in tasks)
        patch = {"spec": {"tasks": tasks, "minAvailable": least}}
        self.may_restart("TaskCompleted")
        self.do(self.simulation.patch_job(NAME, patch))

    @precondition(lambda self: self.job())
    @rule(again=jobs())
    def delete_and_create(self, again: Object) -> None:
        async def both() -> None:
            await self.simulation.store.delete(JOB, "default", NAME)
            await self.simulation.create_job(again)

        self.begins()
        self.do(both())

    @precondition(lambda self: self.job())
    @rule()
    def delete_job(self) -> None:
        self.do(self.simulation.store.delete(JOB, "default", NAME))

    @precondition(lambda self: not self.job())
    @rule(again=jobs())
    def create_job(self, again: Object) -> None:
        self.begins()
        self.do(self.simulation.create_job(again))

    @rule(kind=st.sampled_from(SUPPORTING))
    def delete_supporting(self, kind: Kind) -> None:
        self.promises.writes.secrets_deleted += kind == SECRET

        async def delete() -> None:
            for obj in (await self.simulation.store.list(kind)).items:
                if obj["metadata"].get("ownerReferences"):
                    await self.simulation.store.delete(kind, "default", obj["metadata"]["name"])

        self.do(delete())

    @rule(seconds=st.sampled_from([0.1, 6.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.do(self.simulation.advance(seconds, finish_pods=False))

    @rule(seconds=st.sampled_from([6.0, 40.0]))
    def starve(self, seconds: float) -> None:
        """The gang is admitted, and for a while nobody runs its pods."""
        self.do(self.simulation.admit())
        self.promises_hold()  # from here on they are known to be Pending
        self.do(self.simulation.advance(seconds, finish_pods=False))

    @rule(fault=st.sampled_from(Fault), at=st.integers(0, 8))
    def arm(self, fault: Fault, at: int) -> None:
        event(str(fault))
        self.cluster.arm(fault, at)

    @rule(kind=st.sampled_from([POD, POD, JOB, POD_GROUP, COMMAND]))
    def change_under_hand(self, kind: Kind) -> None:
        """The next object of a kind that the controller writes to makes way for a namesake."""
        self.cluster.arm(Fault.SUCCEEDED_BY_NAMESAKE, kind=kind)

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

    @rule(held=st.sampled_from([False, False, True]), repeating=st.booleans())
    def misbehave(self, held: bool, repeating: bool) -> None:
        self.cluster.repeating = repeating
        self.cluster.hold(held)


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
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
