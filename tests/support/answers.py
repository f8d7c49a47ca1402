"""Which policy answers what happens to one pod, told from the manifest (docs/lifecycle.md)."""

from typing import NamedTuple

from vcjob.api.policies import ACTIONS
from vcjob.api.types import Object


class Answer(NamedTuple):
    """An action and what its policy is for, as statuses tell it."""

    action: str
    cause: str


NOTHING = Answer("", "")


def answer_to(job: Object, task: str, event: str, exit_code: int = 0) -> tuple[Answer, bool]:
    """What is done about an event of a pod of a task, and whether it is done at once.

    The task's policies come first, then the Job's; the first that matches decides.
    """
    own = next(one for one in job["spec"]["tasks"] if one["name"] == task)
    for policy in (*own["policies"], *job["spec"]["policies"]):
        if {policy.get("event"), *policy.get("events", ())} & {event, "*"}:
            cause = event
        elif exit_code and policy.get("exitCode") == exit_code:
            cause = f"exit code {exit_code}"
        else:
            continue
        if policy["action"] == "ResumeJob":
            return NOTHING, True
        if policy["action"] == "RestartPartition" and "partitionPolicy" not in own:
            return NOTHING, "timeout" not in policy
        return Answer(policy["action"], cause), "timeout" not in policy
    return NOTHING, True


def told_by(status: Object) -> Answer:
    """The action that a status tells of, and what the policy for it is for."""
    state = status.get("state", {})
    reason, message = state.get("reason", ""), state.get("message", "")
    _, _, cause = message.partition(" (policy for ")
    return Answer(reason, cause.partition(")")[0]) if reason in ACTIONS and cause else NOTHING
