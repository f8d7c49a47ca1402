"""What there is around a Job's pods, and whether anything can be made for the Job because of it."""

from collections.abc import Mapping, Sequence

import msgspec

from vcjob.api.kinds import Kind
from vcjob.api.problems import errors, format_path, sentence
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.core.reasons import MALFORMED, Trouble
from vcjob.core.supporting import Owned


class Surroundings(msgspec.Struct, frozen=True):
    """What there is around a Job's pods.

    ``group`` is its PodGroup; ``owned`` its supporting objects; ``commands`` those that name its
    UID; ``priorities`` values of PriorityClasses. ``queue_exists`` is whether its queue is there;
    ``absent_claims`` are claims that others were to make, ``absent_classes`` PriorityClasses that
    pods are to have, each with the first task that names it. ``forwarding`` is whether the queue is
    spread over several clusters. ``trouble`` is what the last attempt failed for; while it lasts
    nothing is made, unless this pass is a new ``attempt``.
    """

    group: Object | None = None
    owned: Owned = {}
    commands: Sequence[Object] = ()
    priorities: Mapping[str, int] = {}
    queue_exists: bool = True
    absent_claims: tuple[str, ...] = ()
    absent_classes: Mapping[str, str] = {}
    forwarding: bool = False
    trouble: Trouble | None = None
    attempt: bool = False


def trouble_of(blueprint: Blueprint, around: Surroundings) -> Trouble | None:
    """Why nothing can be made for a Job at the moment, or None."""
    for problem in errors(list(blueprint.problems)):
        place = format_path(problem.path)
        why = sentence(problem)
        return Trouble("PluginError", f"{place}: {why}" if place else why)
    if not around.queue_exists and around.group is None:
        queue = blueprint.job.spec.queue or DEFAULT_QUEUE
        return Trouble("QueueNotFound", f'the queue "{queue}" does not exist: create it, '
                       "or create the Job anew with another in spec.queue")  # fmt: skip
    if around.absent_claims:
        first, *more = around.absent_claims
        if not more:
            return Trouble("PVCError", f"the claim {first} does not exist: create it")
        claims = ", ".join(around.absent_claims)
        return Trouble("PVCError", f"the claims {claims} do not exist: create them")
    return around.trouble


def taken_name(
    kind: Kind, name: str, owner: Object, job: str, *, left_over: bool, leaving: bool
) -> Trouble:
    """Why a Job cannot make an object that is there already and is not its own.

    ``owner`` is the reference to the object's controller, empty if it has none; ``job`` the name of
    the Job. ``left_over``: the owner is a Job that is gone. ``leaving``: the object is being
    deleted.
    """
    if left_over:
        whose = f"the deleted Job {owner['name']}"
        if owner["name"] == job:
            whose = "a deleted Job of the same name"
        message = f"waiting until nothing is left over from {whose}"
        return Trouble("WaitingForLeftovers", message, passing=f": {kind} {name} is still there")
    if leaving:
        message = f"{kind} {name} is being deleted: waiting until it is gone"
        return Trouble("WaitingForLeftovers", message)
    if owner:
        message = f"{kind} {name} belongs to the {owner['kind']} {owner['name']}: delete that"
    else:
        message = f"{kind} {name} exists and does not belong to this Job: delete or rename it"
    return Trouble("NameTaken", f"{message}, or give the Job another name")


def lacks_class(job: Job, around: Surroundings) -> Trouble | None:
    """Why no pod can be made for lack of a PriorityClass, or None.

    An API server refuses pods of a class that there is not.
    """
    for name, task in around.absent_classes.items():
        what = f'the PriorityClass "{name}" of task {task} does not exist: create it'
        if name == job.spec.priority_class_name:
            what += ", or name another in spec.priorityClassName"
        return Trouble("PriorityClassNotFound", what)
    return None


def is_unreadable(job: Job, around: Surroundings) -> bool:
    """Whether nobody can tell which pods are wanted: then those that there are stay."""
    trouble = around.trouble
    return trouble is not None and trouble.reason == MALFORMED and not job.spec.tasks
