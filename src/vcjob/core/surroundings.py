"""What there is around a Job's pods, and whether anything can be made for the Job because of it."""

from collections.abc import Mapping, Sequence

import msgspec

from vcjob.api.problems import errors, format_path, sentence
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.core.reasons import MALFORMED, Trouble
from vcjob.core.supporting import Owned


class Surroundings(msgspec.Struct, frozen=True):
    """What there is around a Job's pods.

    ``group`` is its PodGroup; ``owned`` its supporting objects; ``commands`` those that name its
    UID; ``priorities`` values of PriorityClasses. ``queue_exists`` is whether its queue is there;
    ``absent_claims`` are claims that others were to make. ``forwarding`` is whether the queue is
    spread over several clusters. ``trouble`` is what the last attempt failed for; while it lasts
    nothing is made, unless this pass is a new ``attempt``.
    """

    group: Object | None = None
    owned: Owned = {}
    commands: Sequence[Object] = ()
    priorities: Mapping[str, int] = {}
    queue_exists: bool = True
    absent_claims: tuple[str, ...] = ()
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
        queue = blueprint.job.spec.queue or "default"
        return Trouble("QueueNotFound", f'the queue "{queue}" does not exist: create it, '
                       "or name another in spec.queue")  # fmt: skip
    if around.absent_claims:
        claims = ", ".join(around.absent_claims)
        return Trouble("PVCError", f"the claim {claims} does not exist: create it")
    return around.trouble


def is_unreadable(job: Job, around: Surroundings) -> bool:
    """Whether nobody can tell which pods are wanted: then those that there are stay."""
    trouble = around.trouble
    return trouble is not None and trouble.reason == MALFORMED and not job.spec.tasks
