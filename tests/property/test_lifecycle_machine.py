"""Random lives of Jobs: whatever users, nodes, crashes and faults do, the promises hold.

The promises (issue and docs/lifecycle.md): never more pods than replicas; no pod of an old attempt
beside a new one; what pods need is there before them; what belongs to others is left alone;
counters are true; keys are made once for a Job; a retry is counted once; final phases are final;
every Job ends or says what it waits for; the kept summary equals a recount.
"""

import asyncio
from collections import Counter
from typing import Any

import pytest
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
from simulation import Simulation

from vcjob.api.defaults import apply_defaults
from vcjob.api.kinds import CONFIG_MAP, JOB, POD, SECRET, SERVICE, Kind
from vcjob.api.names import JOB_VERSION, SUSPEND
from vcjob.api.policies import ACTIONS
from vcjob.api.types import Object
from vcjob.controller.cluster import NotFound
from vcjob.core.facts import PodPhase, pod_facts
from vcjob.core.observed import recount

NAME = "lc"
FINAL = ("Completed", "Failed", "Terminated")
EVENTS = ("PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "*")
SCHEDULES = 60
LONG_SCHEDULES = 10_000

actions = st.sampled_from(ACTIONS)
timeouts = st.sampled_from(["", "", "", "5s", "30s"])


@st.composite
def policies(draw: Any) -> list[Object]:
    found: list[Object] = []
    for _ in range(draw(st.integers(0, 2))):
        policy: Object = {"action": draw(actions)}
        if draw(st.booleans()):
            policy["events"] = draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=2))
        else:
            policy["exitCode"] = draw(st.sampled_from([1, 3]))
        if timeout := draw(timeouts):
            policy["timeout"] = timeout
        found.append(policy)
    return found


@st.composite
def jobs(draw: Any) -> Object:
    tasks: list[Object] = []
    for name in ["ps", "worker", "eval"][: draw(st.integers(1, 3))]:
        replicas = draw(st.integers(0, 3))
        container = {"name": "main", "image": "busybox"}
        task: Object = {
            "name": name,
            "replicas": replicas,
            "policies": draw(policies()),
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
        if draw(st.booleans()):
            task["minAvailable"] = draw(st.integers(0, replicas))
        if tasks and draw(st.integers(0, 3)) == 0:
            task["dependsOn"] = {"name": [tasks[0]["name"]]}
        if draw(st.integers(0, 3)) == 0:
            task["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 2}
        tasks.append(task)
    spec: Object = {
        "tasks": tasks,
        "plugins": {"svc": [], "env": [], **({"ssh": []} if draw(st.booleans()) else {})},
        "policies": draw(policies()),
        "maxRetry": draw(st.integers(1, 4)),
    }
    if draw(st.integers(0, 3)) == 0:
        spec["minSuccess"] = draw(st.integers(1, 3))
    return apply_defaults({"metadata": {"name": NAME}, "spec": spec})


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
        self.reasons = 0
        self.wrong: list[str] = []
        self.followers: list[asyncio.Task[None]] = []
        self.keys: dict[str, set[str]] = {}
        self.secrets_deleted = 0

    def _faulty(self, store: Any) -> Faulty:
        self.cluster = Faulty(store)
        self.cluster.before_create.append(self._check_creation)
        return self.cluster

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize(job=jobs(), foreign=st.sampled_from([False, False, True]), runs=st.booleans())
    def begin(self, job: Object, foreign: bool, runs: bool) -> None:
        self.foreign: Object | None = None
        self.manifest = job

        async def start() -> None:
            s = self.simulation
            if foreign:
                metadata = {"name": f"{NAME}-svc", "namespace": "default"}
                self.foreign = await s.store.create(
                    CONFIG_MAP, {"metadata": metadata, "data": {"keep": "me"}}
                )
            await s.start()
            self.followers = [*map(asyncio.create_task, (self._follow(), self._follow_keys()))]
            await s.create_job(job)
            await s.settle(finish_pods=False)
            if runs:
                await s.admit()
                await s.settle(finish_pods=False)
                await s.run_pending()

        self.do(start())

    async def _follow(self) -> None:
        """Look at every status that is ever written."""
        last: dict[str, Object] = {}
        async for change in self.simulation.store.watch(JOB, "0"):
            uid = change.object["metadata"]["uid"]
            status = change.object.get("status") or {}
            old = last.get(uid, {})
            last[uid] = status
            before, after = (one.get("state", {}).get("phase", "") for one in (old, status))
            if before in FINAL and after != before:
                self.wrong.append(f"left {before} for {after}")
            retries = status.get("retryCount", 0) - old.get("retryCount", 0)
            if retries not in (0, 1) or (retries and after in ("Pending", "Running")):
                self.wrong.append(f"{retries} retries at once, phase {after}")
            if status.get("version", 0) - old.get("version", 0) not in (0, 1):
                self.wrong.append("the version jumped")

    async def _follow_keys(self) -> None:
        """Look at every key that is ever stored; one that somebody deleted may be made anew."""
        async for change in self.simulation.store.watch(SECRET, "0"):
            owner = change.object["metadata"]["ownerReferences"][0]["uid"]
            keys = self.keys.setdefault(owner, set())
            keys.add(change.object["data"]["id_rsa"])
            if len(keys) > 1 + self.secrets_deleted:
                self.wrong.append("a Job got new keys without need")

    async def _check_creation(self, kind: Kind, obj: Object) -> None:
        """What a pod needs is there before it, and it is one that is wanted."""
        if kind != POD:
            return
        store, metadata = self.simulation.store, obj["metadata"]
        needs = [(CONFIG_MAP, f"{NAME}-svc"), (SERVICE, NAME)]
        if any(volume["name"] == f"{NAME}-ssh" for volume in obj["spec"]["volumes"]):
            needs.append((SECRET, f"{NAME}-ssh"))
        for needed, name in needs:
            try:
                there = await store.get(needed, "default", name)
            except NotFound:
                if not self.cluster.held:  # nobody could have known of a deletion
                    self.wrong.append(f"{metadata['name']} came before its {needed}")
                continue
            listed = f"{metadata['name']}.{NAME}" in str(there.get("data", ""))
            if needed == CONFIG_MAP and not listed and not self.cluster.held:
                self.wrong.append(f"{metadata['name']} is not in the host list")
        version = int(metadata["annotations"][JOB_VERSION])
        for pod in (await store.list(POD)).items:
            same = (
                pod["metadata"]["ownerReferences"][0]["uid"]
                == metadata["ownerReferences"][0]["uid"]
            )
            old = int(pod["metadata"]["annotations"][JOB_VERSION]) < version
            if same and old and pod["status"]["phase"] in ("Pending", "Running"):
                self.wrong.append(f"{metadata['name']} of a new attempt beside an old one")

    @rule()
    def admit(self) -> None:
        self.do(self.simulation.admit())

    @rule()
    def unknown_group(self) -> None:
        self.reasons += 1
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
            self.reasons += 1
            self.do(self.simulation.end_pod(name, code))

    @rule(code=st.sampled_from([0, 0, 0, 1]))
    def end_all(self, code: int) -> None:
        self.reasons += len(self._pods_in("Running"))
        self.do(self.simulation.end_running(code))

    @rule(data=st.data(), count=st.integers(1, 4))
    def restart_containers(self, data: st.DataObject, count: int) -> None:
        if name := self._some_pod(data, "Running"):
            self.reasons += 1
            self.do(self.simulation.restart_containers(name, count))

    @rule(data=st.data())
    def delete_one(self, data: st.DataObject) -> None:
        if name := self._some_pod(data, "Pending", "Running", "Succeeded", "Failed"):
            self.reasons += 1
            self.do(self.simulation.delete_pod(name))

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
        self.reasons += 1
        self.do(self.simulation.command(NAME, action))

    @precondition(lambda self: self._job())
    @rule()
    def restart_and_admit(self) -> None:
        """The next attempt is admitted while pods of the last one are still ending."""

        async def both() -> None:
            await self.simulation.command(NAME, "RestartJob")
            await self.simulation.settle(finish_pods=False)
            await self.simulation.admit()

        self.reasons += 1
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
        self.reasons += 1
        self.do(self.simulation.patch_job(NAME, patch))

    @precondition(lambda self: self._job())
    @rule(again=jobs())
    def delete_and_create(self, again: Object) -> None:
        async def both() -> None:
            await self.simulation.store.delete(JOB, "default", NAME)
            await self.simulation.create_job(again)

        self.reasons = 0
        self.do(both())

    @rule(kind=st.sampled_from([CONFIG_MAP, SERVICE, SECRET]))
    def delete_supporting(self, kind: Kind) -> None:
        self.secrets_deleted += kind == SECRET

        async def delete() -> None:
            for obj in (await self.simulation.store.list(kind)).items:
                if obj["metadata"].get("ownerReferences"):
                    await self.simulation.store.delete(kind, "default", obj["metadata"]["name"])

        self.do(delete())

    @rule(seconds=st.sampled_from([0.1, 6.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.reasons += 10  # any number of timers may fire
        self.do(self.simulation.advance(seconds, finish_pods=False))

    @rule(fault=st.sampled_from(Fault), at=st.integers(0, 8))
    def arm(self, fault: Fault, at: int) -> None:
        event(str(fault))
        self.cluster.arm(fault, at)

    @rule()
    def crash(self) -> None:
        async def crash_and_start() -> None:
            await self.simulation.crash()
            await self.simulation.start()

        self.do(crash_and_start())

    @rule(held=st.booleans(), repeating=st.booleans())
    def misbehave(self, held: bool, repeating: bool) -> None:
        self.cluster.repeating = repeating
        self.cluster.hold(held)

    @invariant()
    def promises_hold(self) -> None:
        self.do(self.simulation.settle(finish_pods=False))
        assert self.wrong == []
        if self.foreign:
            there = self.do(self.simulation.store.get(CONFIG_MAP, "default", f"{NAME}-svc"))
            assert there is self.foreign, "an object of somebody else was touched"
        self._summary_is_true()
        job = self._job()
        if job and not self.cluster.held and self.cluster.fault is None:
            self._numbers_are_true(job)

    def _summary_is_true(self) -> None:
        controller = self.simulation.controller
        assert controller is not None
        pods = self.do(self.simulation.pods())
        for uid, record in controller.records.by_uid.items():
            again = recount(record.observed.pods.values())
            assert again.tasks == record.observed.tasks
            if not self.cluster.held:
                owned = [p for p in pods if p["metadata"]["ownerReferences"][0]["uid"] == uid]
                facts = [found for pod in owned if (found := pod_facts(pod))]
                assert {f.name for f in facts} == {f.name for f in record.observed.pods.values()}

    def _numbers_are_true(self, job: Object) -> None:
        """At rest; while something is tried again later, numbers may be late."""
        controller = self.simulation.controller
        assert controller is not None
        record = controller.records.by_uid[job["metadata"]["uid"]]
        if record.failures or record.trouble:
            return
        status = job["status"]
        uid = job["metadata"]["uid"]
        pods = [
            facts
            for pod in self.do(self.simulation.pods())
            if pod["metadata"]["ownerReferences"][0]["uid"] == uid and (facts := pod_facts(pod))
        ]
        counts = Counter(facts.phase for facts in pods)
        if not record.pace.wait(self.simulation.clock.steady(), self.status_interval):
            for one in (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.FAILED, PodPhase.TERMINATING):
                assert status.get(one.lower(), 0) == counts[one], one
            assert status.get("succeeded", 0) >= counts[PodPhase.SUCCEEDED]
        by_task = status.get("taskStatusCount", {})
        assert sum(sum(one["phase"].values()) for one in by_task.values()) == sum(
            status.get(p.lower(), 0) for p in PodPhase if p is not PodPhase.TERMINATING
        )
        assert status.get("retryCount", 0) <= self.reasons
        replicas = {task["name"]: task["replicas"] for task in job["spec"]["tasks"]}
        phase = status["state"]["phase"]
        for facts in pods:
            if facts.phase is PodPhase.TERMINATING:
                continue
            ended = facts.phase.is_finished
            assert facts.index < replicas.get(facts.task, 0) or (ended and phase in FINAL)
            if phase in ("Pending", "Running") and not ended:
                assert facts.version == status.get("version", 0)
            if phase in (*FINAL, "Aborted"):
                assert ended

    def teardown(self) -> None:
        try:
            if self.followers:
                self.do(self._to_the_end())
        finally:
            self.do(self._stop())
            self.loop.close()

    async def _to_the_end(self) -> None:
        """With everybody doing their work, a Job ends, or says what it waits for."""
        s = self.simulation
        self.cluster.hold(False)
        self.cluster.arm(None)
        for _ in range(30):
            await s.settle()
            await s.run_all()
            await s.end_running()
            await s.advance(100)
            status = await self._status()
            phase = status.get("state", {}).get("phase")
            if phase in (*FINAL, "Aborted", None):
                break
        assert self.wrong == []
        if status:
            replicas = sum(t["replicas"] for t in (await s.job(NAME))["spec"]["tasks"])
            told = status["state"].get("message")
            assert phase in (*FINAL, "Aborted") or told or not replicas, status

    async def _status(self) -> Object:
        try:
            return await self.simulation.status(NAME)
        except NotFound:
            return {}

    async def _stop(self) -> None:
        for follower in self.followers:
            follower.cancel()
        if self.followers:
            await self.simulation.crash()

    def _job(self) -> Object | None:
        try:
            found: Object = self.do(self.simulation.job(NAME))
        except NotFound:
            return None
        return found

    def _pods_in(self, *phases: str) -> list[str]:
        return sorted(
            pod["metadata"]["name"]
            for pod in self.do(self.simulation.pods())
            if pod["status"]["phase"] in phases
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
