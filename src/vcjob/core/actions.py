"""Events, actions and phases of a Job, as Volcano names them. Source: lifecycle.md section 3."""

from enum import StrEnum


class Event(StrEnum):
    """What policies react to."""

    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    UNKNOWN = "Unknown"


class Action(StrEnum):
    """What policies and Commands ask for."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class Phase(StrEnum):
    """status.state.phase of a Job; NEW is one that has no status yet."""

    NEW = ""
    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


FINAL = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED})
"""Phases that are never left."""

ACTIVE = frozenset({Phase.NEW, Phase.PENDING, Phase.RUNNING, Phase.RESTARTING})
"""Phases in which a Job wants to have pods."""

ENDING = {
    Phase.ABORTING: Phase.ABORTED,
    Phase.COMPLETING: Phase.COMPLETED,
    Phase.TERMINATING: Phase.TERMINATED,
}
"""Phases in which pods are being stopped, and the phase that comes when none is left."""

STOPPING = {
    Action.ABORT_JOB: Phase.ABORTING,
    Action.COMPLETE_JOB: Phase.COMPLETING,
    Action.TERMINATE_JOB: Phase.TERMINATING,
}
"""Actions that stop a Job, and the phase they lead to."""

TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
"""Actions that restart some pods of a Job."""
