"""Lifecycle policies: admission.md section 3."""

from collections.abc import Iterator

from vcjob.api.policies import ACTIONS, ANY_EVENT, EVENTS, INTERNAL_ACTIONS, INTERNAL_EVENTS
from vcjob.api.problems import Path, Problem
from vcjob.api.suggestions import suggest
from vcjob.api.types import Policy, Task
from vcjob.core.checks.subject import Subject


def check_policies(subject: Subject) -> Iterator[Problem]:
    """The job's policies, then each task's."""
    spec = subject.job.spec
    yield from _check_list(spec.policies, ("spec", "policies"))
    yield from _check_partitions(spec.policies, spec.tasks, ("spec", "policies"))
    for index, task in enumerate(spec.tasks):
        path: Path = ("spec", "tasks", index, "policies")
        yield from _check_list(task.policies, path)
        yield from _check_partitions(task.policies, (task,), path)


def _check_list(policies: tuple[Policy, ...], path: Path) -> Iterator[Problem]:
    first_of: dict[str | int, int] = {}
    for index, policy in enumerate(policies):
        where = (*path, index)
        yield from _check_policy(policy, where)
        for trigger in _triggers(policy):
            first = first_of.setdefault(trigger, index)
            if first != index:
                name = f"exit code {trigger}" if isinstance(trigger, int) else f"event {trigger}"
                yield Problem(
                    f"policies[{index}] is for the {name}, but so is policies[{first}]",
                    where,
                    "one event or exit code can have one action only; remove one of the two",
                )
    if ANY_EVENT in first_of and len([item for item in first_of if isinstance(item, str)]) > 1:
        yield Problem(
            'the event "*" stands for all events, so no other event may stand beside it',
            (*path, first_of[ANY_EVENT]),
            'remove the other events, or replace "*" by the events that are meant',
        )


def _check_partitions(
    policies: tuple[Policy, ...], tasks: tuple[Task, ...], path: Path
) -> Iterator[Problem]:
    """Partitions can only be restarted where there are some."""
    if not tasks or any(task.partition_policy for task in tasks):
        return
    whom = f'task "{tasks[0].name}"' if len(tasks) == 1 else "no task"
    has = "has no" if len(tasks) == 1 else "has a"
    for index, policy in enumerate(policies):
        if policy.action == "RestartPartition":
            yield Problem(
                f"{whom} {has} partitionPolicy, so RestartPartition restarts nothing",
                (*path, index, "action"),
                "add a partitionPolicy, or choose RestartTask or RestartPod",
                warning=True,
            )


def _triggers(policy: Policy) -> tuple[str | int, ...]:
    exit_codes = () if policy.exit_code is None else (policy.exit_code,)
    return (*_events(policy), *exit_codes)


def _events(policy: Policy) -> tuple[str, ...]:
    """The distinct events, in the order given; an empty ``event`` is none."""
    named = (policy.event, *policy.events) if policy.event else policy.events
    return tuple(dict.fromkeys(named))


def _check_policy(policy: Policy, path: Path) -> Iterator[Problem]:
    events = _events(policy)
    if events and policy.exit_code is not None:
        yield Problem(
            "a policy is either for events or for an exit code, not for both",
            (*path, "exitCode"),
            "write two policies",
        )
    elif not events and policy.exit_code is None:
        yield Problem(
            "the policy says neither upon which event nor upon which exit code it acts",
            path,
            f"add event: {' | '.join(EVENTS)}, or exitCode",
        )
    if policy.exit_code == 0:
        yield Problem(
            "exit code 0 is success, upon which no policy can act",
            (*path, "exitCode"),
            "for success use the event TaskCompleted",
        )
    for event in events:
        if event in INTERNAL_EVENTS:
            yield Problem(
                f"the event {event} is the controller's own; a policy cannot use it",
                (*path, "event" if event == policy.event else "events"),
                f"one of: {', '.join(EVENTS)}",
            )
    yield from _check_action(policy, events, path)
    if "PodPending" in events and not policy.timeout:
        yield Problem(
            "without a timeout PodPending never acts: every pod is Pending at first",
            path,
            "add how long a pod may be Pending, for example timeout: 10m",
            warning=True,
        )


def _check_action(policy: Policy, events: tuple[str, ...], path: Path) -> Iterator[Problem]:
    if policy.action in ACTIONS:
        return
    where = (*path, "action")
    # As recorded, an unknown action does not refuse a policy for an exit code (case 055).
    warning = not events and policy.exit_code is not None
    if not policy.action:
        yield Problem(
            "the policy has no action", where, f"one of: {', '.join(ACTIONS)}", warning=warning
        )
    elif policy.action in INTERNAL_ACTIONS:
        yield Problem(
            f"the action {policy.action} is the controller's own; a policy cannot use it",
            where,
            f"one of: {', '.join(ACTIONS)}",
            warning=warning,
        )
    else:
        yield Problem(
            f'there is no action "{policy.action}"',
            where,
            suggest(policy.action, ACTIONS),
            warning=warning,
        )
