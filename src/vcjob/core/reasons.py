"""Why a Job is where it is, and what it waits for, in one sentence (user case P99)."""

import re
from collections.abc import Mapping

import msgspec

from vcjob.api.names import MINIMUM_FIRST
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, Object
from vcjob.core.actions import Phase
from vcjob.core.draft import Draft
from vcjob.core.indices import IndexSet
from vcjob.core.lagging import lagging, progress, unable, unsteady, why_not
from vcjob.core.minimum_first import NOT_HELD
from vcjob.core.waiting import readiness

PLUGIN_WARNING = "PluginWarning"
"""Reason of Events about what plugins warn of; ``validate`` tells the same."""

MALFORMED = "Malformed"
"""Reason of a Job that has a shape in which it cannot be read."""


class Trouble(msgspec.Struct, frozen=True):
    """A reason in one word and a sentence, and the type of the Event it becomes ("" for none).

    ``passing`` goes on with the sentence: what is left of a machine, for example. The Event has it
    as it was then, but no new one is made when it changes. ``standing`` goes on in the status
    only: how many pods, for example.
    """

    reason: str
    message: str
    event: str = "Warning"
    passing: str = ""
    standing: str = ""

    @property
    def told(self) -> str:
        """What the Event says."""
        return self.message + self.passing

    @property
    def sentence(self) -> str:
        """The whole of it."""
        return self.told + self.standing

    def is_told_by(self, reason: str, message: str) -> bool:
        """Whether a status with this reason and message says so already, with other numbers."""
        rest = message.removeprefix(self.message)
        same = message.startswith(self.message) and (not rest or rest.startswith(_BREAKS))
        return reason == self.reason and same


_BREAKS = (": ", "; ")


def waiting_reason(
    draft: Draft,
    group: Object | None,
    waiting: frozenset[str],
    held: Mapping[str, IndexSet] = NOT_HELD,
    *,
    admitted: bool,
) -> Trouble | None:
    """What a Pending or Running Job waits for, or None if for nothing.

    Tasks that are ``waiting`` have not had their turn, places that are ``held`` back get a pod once
    the minimum runs.
    """
    if not any(task.replicas for task in draft.job.spec.tasks):
        return Trouble("NoReplicas", "no task has replicas: raise those of one", "")
    if draft.phase is Phase.PENDING and (impossible := _impossible_gang(draft.job)):
        return impossible
    if draft.phase is Phase.PENDING and not admitted:
        return _gang(draft, group)
    late = lagging(draft, waiting, held)
    if late or draft.phase is Phase.PENDING:
        standing = [progress(draft, waiting, late), why_not(draft, late)]
    else:
        standing = []
    order = [_order(draft.job, waiting)] if waiting else []
    if facts := unable(draft, late):
        why = f"pod {facts.name} cannot start: {facts.failing}"
        return Trouble("PodsNotStarting", why, standing=_after("; ", standing[:1] + order))
    if facts := unsteady(draft):
        why = f"pod {facts.name} does not keep running: {facts.failing}"
        return Trouble("PodsFailing", why, standing=_after("; ", standing + order))
    if waiting:
        why = "; ".join([*order, *([_beyond_minimum(held)] if held else [])])
        standing.insert(0, readiness(draft, waiting))
        return Trouble("DependsOn", why, "Normal", standing=_after("; ", standing))
    if held:
        return Trouble(
            "MinimumFirst", _beyond_minimum(held), "Normal", standing=_after("; ", standing)
        )
    if standing:
        return Trouble(
            "PodsNotRunning", "waiting for pods to run", "", standing=_after(": ", standing)
        )
    return None


def with_progress(
    why: Trouble, draft: Draft, waiting: frozenset[str], held: Mapping[str, IndexSet] = NOT_HELD
) -> Trouble:
    """What stands in a Job's way, and how many of its pods have started in spite of it."""
    late = lagging(draft, waiting, held)
    if not late or not draft.observed.pods:
        return why
    return msgspec.structs.replace(why, standing=f"; {progress(draft, waiting, late)}")


def _after(break_: str, clauses: list[str]) -> str:
    """Clauses as the end of a sentence; those that are empty are left out."""
    said = [clause for clause in clauses if clause]
    return break_ + "; ".join(said) if said else ""


def _beyond_minimum(held: Mapping[str, IndexSet]) -> str:
    """How many pods of which task wait for those of the minimum."""
    counts = [f"{len(places)} of task {task}" for task, places in held.items()]
    return f"pods beyond the minimum are made once it runs ({MINIMUM_FIRST}): {', '.join(counts)}"


def _impossible_gang(job: Job) -> Trouble | None:
    """A minimum of pods that the replicas never reach. Admission refuses such a Job."""
    for task in job.spec.tasks:
        if task.min_available is not None and task.min_available > task.replicas:
            return _beyond(f"of task {task.name}", task.min_available, task.replicas)
    replicas = sum(task.replicas for task in job.spec.tasks)
    if job.spec.min_available > replicas:
        return _beyond("of the Job", job.spec.min_available, replicas)
    return None


def _beyond(whose: str, least: int, replicas: int) -> Trouble:
    message = f"minAvailable {whose} is {least}, but there are only {replicas} replicas"
    return Trouble("MinAvailable", f"{message}: lower minAvailable or raise replicas")


def _order(job: Job, waiting: frozenset[str]) -> str:
    """Which tasks wait for which others."""
    sentences = []
    for task in job.spec.tasks:
        if task.name in waiting and task.depends_on:
            any_of = "one of " if task.depends_on.iteration == "any" else ""
            names = ", ".join(task.depends_on.name)
            are = "are" if len(task.depends_on.name) > 1 and not any_of else "is"
            sentences.append(f"task {task.name} waits until {any_of}{names} {are} ready")
    return "; ".join(sentences)


def unschedulable(draft: Draft, group: Object | None) -> Trouble | None:
    """What the scheduler says of a PodGroup that it does not admit; None if it says nothing."""
    condition = _newest_condition(group)
    if not condition:
        return None
    kind, reason = condition.get("type", "").lower(), condition.get("reason") or ""
    why = _UID.sub("", condition.get("message") or reason or "no reason given")
    waits = f"PodGroup of {draft.job.metadata.name} is {kind}"
    if reason in _CURES:
        return Trouble("PodGroupPending", f"{waits}: {why}; {_CURES[reason]}")
    # What is left of machine and queue changes with each pod of others that comes or goes.
    return Trouble("PodGroupPending", waits, passing=f": {why}")


_UID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""What follows the name of a Job in that of its PodGroup."""

_LESS = "lower minAvailable, or create the Job anew with pods that request less"

_CURES = {
    "ExceedsMachine": _LESS,
    "ExceedsCluster": f"add nodes, {_LESS}",
    "ExceedsQueue": f"raise that, {_LESS}",
    "QueueClosed": "open it",
}
"""What helps where waiting does not, by the reason of our schedulers."""


def _gang(draft: Draft, group: Object | None) -> Trouble:
    if why := unschedulable(draft, group):
        return why
    queue = draft.job.spec.queue or DEFAULT_QUEUE
    return Trouble("WaitingForQueue", f'waiting to be admitted by the queue "{queue}"', "")


def _newest_condition(group: Object | None) -> Object | None:
    """The newest condition of a PodGroup that is true, unless it says that all is well."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    true = [condition for condition in conditions if condition.get("status") == "True"]
    if not true:
        return None
    newest: Object = max(true, key=lambda one: one.get("lastTransitionTime") or "")
    return newest if newest.get("type") != "Scheduled" else None
