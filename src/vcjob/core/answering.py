"""What policies say to what has happened: done at once, or after their timeout.

Source: lifecycle.md section 4.
"""

from collections.abc import Iterable

from vcjob.core.actions import ACTIVE
from vcjob.core.draft import Draft, Place, has_target, start
from vcjob.core.indices import IndexSet
from vcjob.core.occurrences import Occurrence, is_current
from vcjob.core.policies import Answer, answer, answer_exit_codes
from vcjob.core.refusals import forget_refused, is_refused, refuse
from vcjob.core.retries import counted_under
from vcjob.core.timers import schedule


def answer_occurrences(draft: Draft, found: Iterable[Occurrence], now: float) -> None:
    """Ask the policies about each occurrence, and do or schedule what they say."""
    found = list(found)
    forget_refused(draft, found)
    for one in found:
        if draft.phase not in ACTIVE or draft.killed:
            return  # the rest happened to pods, or a PodGroup, that are to go
        if one.place and _is_stale(draft, one.place):
            continue
        reply = _reply(draft, one)
        if not reply or is_refused(draft, one.event, one.task, reply.action):
            continue
        if reply.delay:
            schedule(draft, one, reply, _cause(one, reply.exit_code), now)
        else:
            if not has_target(draft, reply.action, one.place):
                refuse(draft, one.event, one.task, reply.action)
            event = counted_under(one.event, reply.exit_code)
            start(draft, reply.action, _cause(one, reply.exit_code), one.place, event)


def _reply(draft: Draft, one: Occurrence) -> Answer | None:
    if one.only_exit_codes:
        return answer_exit_codes(draft.job.spec, one.task, one.exit_codes)
    return answer(draft.job.spec, one.task, one.event, one.exit_codes)


def _cause(one: Occurrence, exit_code: int | None) -> str:
    policy = f"exit code {exit_code}" if exit_code is not None else str(one.event)
    return f"{one.cause} (policy for {policy})"


def _is_stale(draft: Draft, place: Place) -> bool:
    """Whether an action of this very pass has already dealt with the pod."""
    facts = draft.observed.pods.get((place.task, place.index)) or draft.observed.gone.get(
        (place.task, place.index)
    )
    if facts:
        return not is_current(draft, facts)
    return draft.killed or any(
        target.task == place.task
        and place.retry < target.retry
        and place.index in IndexSet.parse(target.indices)
        for target in draft.state.targets
    )
