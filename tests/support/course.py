"""What is promised of a Job's course: each status, held against the one before and the pods."""

from answers import NOTHING, Answer, told_by
from owned import ENDED, FINAL, replicas_of, retry_of, slot_of, version_of
from used_retries import UsedRetries, used_retries
from witness import Witness

from vcjob.api.kinds import JOB
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import EventType
from vcjob.core.indices import IndexSet
from vcjob.core.state import State, state_of

STOPPED = ("Aborting", "Completing", "Terminating")
_ON = {*STOPPED, "Restarting"}
GOES_ON_TO = {
    "": {"Pending"},
    "Pending": {"Running", *_ON},
    "Running": {"Pending", "Completed", "Failed", *_ON},
    "Restarting": {"Pending", "Failed", *STOPPED},
    "Aborting": {"Aborted", "Restarting"},
    "Completing": {"Completed"},
    "Terminating": {"Terminated"},
    "Aborted": {"Restarting"},
    **{phase: set() for phase in FINAL},
}


class Course:
    """Looks at each status that is written; ``wrong`` gets what was broken.

    ``answers`` are the actions of policies that statuses have told of, oldest first.
    """

    def __init__(self, witness: Witness, wrong: list[str]) -> None:
        self._witness, self._wrong = witness, wrong
        self.answers: list[Answer] = []
        self._retries = UsedRetries(wrong)
        self._statuses: dict[str, Object] = {}
        self._doomed: dict[str, set[str]] = {}

    async def follow(self) -> None:
        """Look at every status from now on."""
        async for change in self._witness.simulation.store.watch(JOB, "0"):
            if change.type is not EventType.DELETED:
                await self._look(change.object)

    async def _look(self, job: Object) -> None:
        uid, witness = job["metadata"]["uid"], self._witness
        if uid not in self._statuses:  # pods of a Job before are none of this one's
            witness.cleaned, witness.sure = set(), True
        replicas = replicas_of(job)
        wanted = {(t, index) for t, index in witness.cleaned if index < replicas.get(t, 0)}
        if wanted != witness.cleaned and witness.simulation.controller_options["status_interval"]:
            witness.sure = False  # a place that comes back at once may be remembered as done
        witness.cleaned = wanted
        old = self._statuses.get(uid, {})
        self._statuses[uid] = new = job.get("status") or {}
        if new:
            self._check_numbers(old, new)
            self._retries.look(job, old, new)
            if (told := told_by(new)) not in (NOTHING, told_by(old)):
                self.answers.append(told)
            await self._check_phases(uid, old, new)
            await self._note_targets(job, old, new)
            await self._check_end_of_phase(uid, old, new)

    def _check_numbers(self, old: Object, new: Object) -> None:
        """Retries and versions are counted one by one."""
        phase = _phase(new)
        retries = new.get("retryCount", 0) - old.get("retryCount", 0)
        if retries not in (0, 1) or (retries and phase not in ("Restarting", "Failed", *STOPPED)):
            self._wrong.append(f"{retries} retries at once, phase {phase}")
        if new.get("version", 0) - old.get("version", 0) not in (0, 1):
            self._wrong.append("the version jumped")

    async def _check_phases(self, uid: str, old: Object, new: Object) -> None:
        before, after = _phase(old), _phase(new)
        if after != before and after not in GOES_ON_TO[before]:
            self._wrong.append(f"went from {before or 'nothing'} to {after}")

    async def _note_targets(self, job: Object, old: Object, new: Object) -> None:
        """What is restarted from now on is no longer done, and has to go."""
        uid = job["metadata"]["uid"]
        known = _state(job, old).targets
        is_last = used_retries(job) >= job["spec"]["maxRetry"]  # which replaces nothing
        for target in _state(job, new).targets:
            places = {(target.task, index) for index in IndexSet.parse(target.indices)}
            if target not in known and not is_last:
                self._witness.cleaned -= places
            self._doomed.setdefault(uid, set()).update(
                pod["metadata"]["uid"]
                for pod in await self._witness.pods_of(uid)
                if slot_of(pod) in places and retry_of(pod) < target.retry
            )
        if new.get("retryCount", 0) > old.get("retryCount", 0) and _phase(new) in STOPPED:
            self._witness.sure = False  # a restart that a stop overtook: of which pods, nobody says
        killed = new.get("version", 0) > old.get("version", 0)
        if killed and _phase(new) == "Restarting" and not is_last:
            self._witness.cleaned = set()

    async def _check_end_of_phase(self, uid: str, old: Object, new: Object) -> None:
        before, after = _phase(old), _phase(new)
        if before in STOPPED and after in ("Aborted", "Completed", "Terminated"):
            for pod in await self._witness.pods_of(uid):
                if pod["status"]["phase"] not in ENDED:
                    self._wrong.append(f"{after}, but {pod['metadata']['name']} is alive")
        if before == "Restarting" and after == "Pending":
            await self._check_restarted(uid, old, new)

    async def _check_restarted(self, uid: str, old: Object, new: Object) -> None:
        """All that had to go is gone once a restart is done."""
        everything = old["state"].get("reason") == "RestartJob"
        doomed = self._doomed.pop(uid, set())
        for pod in await self._witness.pods_of(uid):
            name, phase = pod["metadata"]["name"], pod["status"]["phase"]
            is_old = version_of(pod) < new.get("version", 0)
            if is_old and (everything or phase not in ENDED):
                self._wrong.append(f"{name} of an old version is there after a restart")
            if pod["metadata"]["uid"] in doomed:
                self._wrong.append(f"{name} was to be restarted, and is still the same")


def _phase(status: Object) -> str:
    return str(status.get("state", {}).get("phase", ""))


def _state(job: Object, status: Object) -> State:
    return state_of(Job.of({**job, "status": status}))
