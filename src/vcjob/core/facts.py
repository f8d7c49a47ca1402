"""What decisions read of one pod, taken from its object once, when it changes."""

from enum import StrEnum

import msgspec

from vcjob.api import names
from vcjob.api.types import Object
from vcjob.core.indices import LARGEST_INDEX
from vcjob.core.times import seconds_of

# status.reason of pods that kubelets and schedulers end.
_EVICTED_REASONS = ("Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost")

# Reasons of containers that ended by themselves.
_OF_ITSELF = ("Completed", "Error")

# Reasons of containers that wait whose message says no more, but changes with each try.
_SAYS_ALL = ("CrashLoopBackOff",)

_LONGEST_WHY = 300


class PodPhase(StrEnum):
    """status.phase of a pod; TERMINATING stands for a pod with a deletion timestamp."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    TERMINATING = "Terminating"

    @property
    def is_finished(self) -> bool:
        """Whether its containers have ended for good."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


_PHASES = {phase.value: phase for phase in PodPhase if phase is not PodPhase.TERMINATING}


class PodFacts(msgspec.Struct, frozen=True):
    """One pod of a Job.

    ``phase`` counts a pod under deletion as TERMINATING, whatever its containers do. ``retry`` and
    ``version`` are those of the Job when the pod was made. ``exit_codes`` are those other than 0 of
    the last termination of every container, those of init containers last: a sidecar that had to be
    killed at the end is not why its pod failed. ``finished`` is the time of the latest one, or 0.
    ``restarts`` sums the restarts of all containers. ``ended`` is how the pod ended before anybody
    deleted it, None if it did not. ``evicted`` tells that its node or a scheduler ends it, which
    counts as a failure, whatever its containers say.
    ``failing`` is why a container cannot start, ``unscheduled`` why the pod has got no node, each
    in the words of whoever tried (at most 300 characters). ``marked`` tells that a controller, of
    Volcano's or ours, is about to delete it. ``ended_by`` is the word for what ended it or a
    container of it from outside, such as OOMKilled or DeadlineExceeded.
    """

    name: str
    uid: str
    task: str
    index: int
    version: int
    retry: int
    phase: PodPhase
    created: float = 0.0
    finished: float = 0.0
    exit_codes: tuple[int, ...] = ()
    restarts: int = 0
    ended: PodPhase | None = None
    evicted: bool = False
    ready: bool = False
    failing: str = ""
    marked: bool = False
    ended_by: str = ""
    unscheduled: str = ""

    @property
    def needs_decision(self) -> bool:
        """Whether a policy may have something to say about it (PodPending aside)."""
        return (
            self.ended is PodPhase.FAILED
            or self.evicted
            or self.restarts > 0
            or bool(self.exit_codes)
        )


def pod_facts(pod: Object) -> PodFacts | None:
    """The facts of a pod, or None if it lacks what tells its place in a Job."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    labels = metadata.get("labels") or {}
    try:
        index = int(annotations.get(names.TASK_INDEX) or labels[names.TASK_INDEX])
        version = int(annotations[names.JOB_VERSION])
        retry = int(annotations.get(names.JOB_RETRY_COUNT, 0))
        task = annotations[names.TASK_SPEC]
    except (KeyError, ValueError):
        return None
    if not 0 <= index <= LARGEST_INDEX or not metadata["name"].endswith(f"-{task}-{index}"):
        return None
    status = pod.get("status") or {}
    text = status.get("phase") or "Pending"
    phase: PodPhase = _PHASES.get(text, PodPhase.UNKNOWN)
    if phase is PodPhase.PENDING and not status.keys() - {"phase", "conditions"}:
        evicted = False
        exit_codes: tuple[int, ...] = ()
        finished, restarts, ready, failing, ended_by = 0.0, 0, False, "", ""
    else:
        exit_codes, finished, restarts, ready, failing = _containers(status)
        evicted = _is_evicted(status)
        ended_by = _ended_by(status)
    ended: PodPhase | None = None
    if phase.is_finished:
        ended = PodPhase.FAILED if evicted else phase
    if metadata.get("deletionTimestamp"):
        phase = PodPhase.TERMINATING
        if finished >= _deletion_asked(metadata) or not finished:
            ended = None
    return PodFacts(
        metadata["name"],
        metadata.get("uid", ""),
        task,
        index,
        version,
        retry,
        phase,
        seconds_of(metadata.get("creationTimestamp", "")) or 0.0,
        finished,
        exit_codes,
        restarts,
        ended,
        evicted,
        ready and phase is PodPhase.RUNNING,
        failing,
        annotations.get(names.OUT_OF_SYNC) == "true",
        ended_by,
        _unscheduled(status) if phase is PodPhase.PENDING else "",
    )


def _deletion_asked(metadata: Object) -> float:
    """When a pod's deletion was asked for: its deletion timestamp lies a grace period later."""
    due = seconds_of(metadata["deletionTimestamp"]) or 0.0
    return due - float(metadata.get("deletionGracePeriodSeconds") or 0)


def _ended_by(status: Object) -> str:
    """What ended the pod, or the first container that failed, if that was not itself."""
    if reason := status.get("reason"):
        return str(reason)
    statuses = status.get("containerStatuses") or ()
    for container in (*statuses, *(status.get("initContainerStatuses") or ())):
        ended = _termination(container)
        if ended.get("exitCode"):
            reason = ended.get("reason") or ""
            return "" if reason in _OF_ITSELF else str(reason)
    return ""


def _termination(container: Object) -> Object:
    """The last termination in the status of a container, empty if it never ended."""
    state = container.get("state") or {}
    last = container.get("lastState") or {}
    return state.get("terminated") or last.get("terminated") or {}


def _containers(status: Object) -> tuple[tuple[int, ...], float, int, bool, str]:
    """Exit codes, time of the end, restarts, readiness, and what keeps containers from running."""
    codes: list[int] = []
    finished = 0.0
    restarts = 0
    failing = ""
    statuses = status.get("containerStatuses") or ()
    for container in (*statuses, *(status.get("initContainerStatuses") or ())):
        restarts += container.get("restartCount", 0)
        state = container.get("state") or {}
        if ended := _termination(container):
            if ended.get("exitCode"):
                codes.append(ended["exitCode"])
            finished = max(finished, seconds_of(ended.get("finishedAt") or "") or 0.0)
        failing = failing or _why_it_waits(state.get("waiting") or {})
    ready = all(container.get("ready") for container in statuses)
    return tuple(codes), finished, restarts, ready, failing


def _why_it_waits(waiting: Object) -> str:
    """What keeps a container from starting; nothing of one whose turn is still to come.

    Of those a kubelet says no more, but the engine of this machine says what their pod lacks.
    """
    reason: str = waiting.get("reason") or ""
    if reason in ("", "ContainerCreating", "PodInitializing"):
        return _in_short(waiting)
    more = "" if reason in _SAYS_ALL else _in_short(waiting)
    return f"{reason}: {more}" if more else reason


def _unscheduled(status: Object) -> str:
    """Why a pod has got no node, in the scheduler's words."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _in_short(condition) or condition.get("reason") or "no reason given"
    return ""


def _in_short(told: Object) -> str:
    """The message of a condition or state in one line."""
    text = " ".join((told.get("message") or "").split()).rstrip(".")
    return text if len(text) <= _LONGEST_WHY else f"{text[: _LONGEST_WHY - 1]}…"


def _is_evicted(status: Object) -> bool:
    if status.get("reason") in _EVICTED_REASONS:
        return True
    return any(
        condition.get("type") == "DisruptionTarget" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
