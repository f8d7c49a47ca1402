"""What is to be done about a Job now: one pure function from what is there to ordered stages.

The stages of a Plan are carried out in order, each only after the one before: *ensure* supporting
objects and the PodGroup, *record* the decisions in one status write, *remove*, *create*, *tell*.
No effect comes before its recorded intent, so that a crash after any part of it loses nothing: the
next plan goes on from there (docs/lifecycle.md).
"""

from collections.abc import Mapping

import msgspec

from vcjob.api.kinds import POD_GROUP
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, Object
from vcjob.core.actions import ACTIVE, ENDING, FINAL, Action, Phase
from vcjob.core.amending import amendment
from vcjob.core.answering import answer_occurrences
from vcjob.core.blueprint import Blueprint
from vcjob.core.departing import UNTIL_RESUMED, cannot_go_on, departing, to_be_admitted
from vcjob.core.draft import Draft, Told, begin, is_used_up
from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import IndexSet
from vcjob.core.minimum_first import held_back
from vcjob.core.observed import Observed, Slot
from vcjob.core.occurrences import has_policies, occurrences
from vcjob.core.orders import obey
from vcjob.core.phases import advance, count_pods
from vcjob.core.reasons import Trouble, unschedulable, waiting_reason, with_progress
from vcjob.core.replicas import (
    BATCH,
    lacks_pods,
    note_done,
    places_to_fill,
    pods_to_remove,
    still_there,
    take_stock,
)
from vcjob.core.status import difference, only_informs, status_of
from vcjob.core.supporting import Remove, Step, group_steps, steps
from vcjob.core.surroundings import Surroundings, is_unreadable, lacks_class, trouble_of
from vcjob.core.timers import arm_pending, drop_timers, fire_timers
from vcjob.core.times import seconds_of
from vcjob.core.waiting import waiting_tasks


class Plan(msgspec.Struct, frozen=True):
    """Stages, in order; empty ones are left out.

    ``amend`` is a merge patch of the Job itself, ``record`` one of its status. ``create`` names
    places of pods, for ``version`` and ``retry``. ``delete_job`` tells that the Job's time to live
    is over. ``again`` is when to plan anew though nothing has changed (seconds since 1970, None:
    not). ``heard`` and ``noted`` are what of ``Observed.attention`` and ``Observed.gone`` need not
    be looked at again once this plan is recorded.
    """

    amend: Object | None = None
    ensure: tuple[Step, ...] = ()
    record: Object | None = None
    handled_commands: tuple[Object, ...] = ()
    remove_group: Remove | None = None
    remove: tuple[PodFacts, ...] = ()
    create: tuple[Slot, ...] = ()
    version: int = 0
    retry: int = 0
    tell: tuple[Told, ...] = ()
    delete_job: bool = False
    again: float | None = None
    heard: frozenset[Slot] = frozenset()
    noted: Mapping[Slot, PodFacts] = {}


def recorded_later(planned: Plan, old_status: Object) -> Plan | None:
    """The same without its record, if that decides nothing and may be written later; else None.

    That a pod has Succeeded and is gone is written at once: nothing else tells of it. A plan that
    removes pods is recorded first: that they are no longer among those that live tells our own
    deletions from those of others.
    """
    decides = (
        planned.amend, planned.handled_commands, planned.remove_group, planned.remove, planned.tell,
        planned.delete_job, any(one.ended is PodPhase.SUCCEEDED for one in planned.noted.values()),
    )  # fmt: skip
    if any(decides) or planned.record is None or not only_informs(old_status, planned.record):
        return None
    return msgspec.structs.replace(planned, record=None)


def plan(
    job: Job, old_status: Object, observed: Observed, around: Surroundings,
    blueprint: Blueprint, now: float,
) -> Plan:  # fmt: skip
    """Plan one pass over a Job.

    ``old_status`` is the status as stored, ``job`` the view of the same object. ``now`` is the time
    in seconds since 1970.
    """
    if job.metadata.deletion_timestamp:
        return Plan()
    draft = begin(job, observed, around.group)
    note_done(draft)
    group_phase = _group_phase(draft, around.group)
    admitted = group_phase not in ("", "Pending")
    waiting = waiting_tasks(draft)
    before, retry = draft.phase, draft.retry
    _decide(draft, around, group_phase, now)
    blocked = trouble_of(blueprint, around) if draft.phase in ACTIVE else None
    if not (unreadable := is_unreadable(job, around)):
        take_stock(draft)
    # One step at a time: an attempt that begins is seen before the phase that it leads to.
    undecided = draft.phase == before and not draft.killed and draft.retry == retry
    if undecided and not (blocked and before is Phase.PENDING and not observed.pods):
        advance(draft, waiting, admitted=admitted)
    counts = count_pods(draft)
    stays = undecided and draft.phase == before and before is not Phase.NEW
    trying = around.attempt and blocked is around.trouble
    able = stays and before in ACTIVE and (blocked is None or trying)
    held = held_back(draft, waiting, around.priorities)
    classless = lacks_class(job, around) if lacks_pods(draft) else None
    _explain(draft, before, around, waiting, held, blocked or classless, admitted=admitted)
    marks = _marks(draft, blueprint, admitted=admitted)
    status = status_of(draft, counts, marks, now, admitted=admitted and draft.phase == before)
    record = difference(old_status, status)
    # A gang that is admitted holds room, which its pods could not take.
    gang = (
        blueprint.pod_group(around.priorities, waiting) if around.group or not classless else None
    )
    ensure = _ensure(draft, around, blueprint, gang) if able else ()
    remove = () if unreadable and draft.phase in ACTIVE else pods_to_remove(draft)
    may_fill = able and admitted and not classless
    create = places_to_fill(draft, waiting, held) if may_fill else ()
    more = draft.retry != retry or len(remove) + len(create) >= BATCH
    return Plan(
        amend=amendment(job, blueprint.claims, forwarding=around.forwarding) if able else None,
        ensure=ensure,
        record=record,
        handled_commands=tuple(
            one for one in around.commands if one["metadata"]["uid"] in draft.state.commands
        ),
        remove_group=_group_to_remove(draft, around.group),
        remove=remove,
        create=create,
        version=draft.version,
        retry=draft.retry,
        tell=tuple(draft.told),
        delete_job=_is_outlived(job, before, now),
        again=_again(draft, job, before, now, more=more),
        heard=frozenset(observed.attention),
        noted=dict(observed.gone),
    )


def _decide(draft: Draft, around: Surroundings, group_phase: str, now: float) -> None:
    """What users ask first, then what happened, then what is due."""
    if draft.phase is Phase.NEW:
        return
    obey(draft, around.commands)
    if draft.phase in ACTIVE and has_policies(draft):
        found = occurrences(draft, group_phase, now)
        drop_timers(draft, group_phase)
        answer_occurrences(draft, found, now)
        if draft.phase in ACTIVE and not draft.killed:
            arm_pending(draft, now)
        fire_timers(draft, now)


def _explain(
    draft: Draft, before: Phase, around: Surroundings, waiting: frozenset[str],
    held: Mapping[str, IndexSet], blocked: Trouble | None, *, admitted: bool,
) -> None:  # fmt: skip
    """Say what the Job waits for, and make an Event of it when that has changed."""
    if draft.phase in (Phase.PENDING, Phase.RUNNING):
        if blocked:
            why: Trouble | None = with_progress(blocked, draft, waiting, held)
        else:
            why = waiting_reason(draft, around.group, waiting, held, admitted=admitted)
        if why:
            _tell(draft, why)
        else:
            draft.reason, draft.message = "", ""
    elif draft.phase is Phase.RESTARTING and not is_used_up(draft):
        _explain_restart(draft, before, around, blocked, admitted=admitted)
    elif draft.phase in ENDING:
        draft.end = departing(*still_there(draft), to="end")
    elif draft.phase is Phase.ABORTED and draft.message:
        draft.end = UNTIL_RESUMED


def _explain_restart(
    draft: Draft, before: Phase, around: Surroundings, blocked: Trouble | None, *, admitted: bool
) -> None:
    """Say what keeps the new pods from coming: first the old ones, then room for the new."""
    leaving = departing(*still_there(draft), to="go")
    waits = draft.phase is before and not draft.killed and not admitted and not leaving
    asked = waits and _group_phase(draft, around.group) == "Pending"  # the room went to others
    why = blocked or (unschedulable(draft, around.group) if asked else None)
    if why:
        state = draft.job.status.state
        is_told = state.reason == why.reason and cannot_go_on(why.message) in state.message
        if why.event and not is_told:
            draft.tell(why.event, why.reason, why.told)
        draft.reason, draft.end = why.reason, cannot_go_on(why.told)
        return
    if draft.reason not in _ACTIONS:  # something stood in the way until now
        draft.reason = str(Action.RESUME_JOB) if draft.state.resumed else str(Phase.RESTARTING)
    draft.end = to_be_admitted(draft.job.spec.queue or DEFAULT_QUEUE) if waits else leaving


_ACTIONS = frozenset(map(str, Action))


def _tell(draft: Draft, why: Trouble) -> None:
    state = draft.job.status.state
    if why.event and not why.is_told_by(state.reason, state.message):
        draft.tell(why.event, why.reason, why.told)
    draft.reason, draft.message = why.reason, why.sentence


def _group_phase(draft: Draft, group: Object | None) -> str:
    """The phase of the PodGroup that counts: none for one that has to go."""
    if not group or draft.group_uid == draft.state.group:
        return ""
    if group["metadata"].get("deletionTimestamp"):
        return ""
    phase: str = (group.get("status") or {}).get("phase") or ""
    return phase


def _marks(draft: Draft, blueprint: Blueprint, *, admitted: bool) -> dict[str, str]:
    """Marks for Volcano's tools, from the first admission on, as Volcano writes them."""
    there = draft.job.status.controlled_resources
    return {
        key: value
        for key, value in blueprint.marks.items()
        if key in there or (admitted or draft.phase is Phase.RUNNING)
    }


def _ensure(
    draft: Draft, around: Surroundings, blueprint: Blueprint, gang: Object | None
) -> tuple[Step, ...]:
    """Supporting objects, and the PodGroup if it is to be ``gang``."""
    made = list(steps(blueprint.supporting_objects(), around.owned))
    if gang is None or (draft.group_uid and draft.group_uid == draft.state.group):
        return tuple(made)  # in the latter case the old PodGroup has to go first
    return (*made, *group_steps(gang, around.group))


def _group_to_remove(draft: Draft, group: Object | None) -> Remove | None:
    if not group or group["metadata"].get("deletionTimestamp"):
        return None
    if draft.phase in ACTIVE and draft.group_uid != draft.state.group:
        return None
    metadata = group["metadata"]
    return Remove(POD_GROUP, metadata["namespace"], metadata["name"], metadata["uid"])


def _is_outlived(job: Job, phase: Phase, now: float) -> bool:
    end = _end_of_life(job, phase)
    return end is not None and now >= end


def _end_of_life(job: Job, phase: Phase) -> float | None:
    """When a finished Job is to be deleted (``ttlSecondsAfterFinished``), None for never."""
    ttl = job.spec.ttl_seconds_after_finished
    since = seconds_of(job.status.state.last_transition_time)
    if ttl is None or since is None or phase not in FINAL:
        return None
    return since + ttl


def _again(draft: Draft, job: Job, before: Phase, now: float, *, more: bool) -> float | None:
    if draft.phase != before or draft.killed or more:
        return now
    times = [timer.due for timer in draft.state.timers]
    end = _end_of_life(job, before)
    if end is not None:
        times.append(end)
    return max(min(times), now) if times else None
