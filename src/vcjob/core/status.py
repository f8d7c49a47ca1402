"""The status of a Job as it is written. Source: job-api.md section 4, lifecycle.md section 10."""

from collections.abc import Mapping
from typing import Any

import msgspec

from vcjob.api.duration import format_duration
from vcjob.api.names import STATE_KEY
from vcjob.api.types import Object
from vcjob.core.actions import ACTIVE, Phase
from vcjob.core.departing import with_end
from vcjob.core.draft import Draft
from vcjob.core.facts import PodPhase
from vcjob.core.indices import IndexSet
from vcjob.core.phases import Counts, cleaned_up
from vcjob.core.state import differ_in_pods_only, encode_state
from vcjob.core.times import duration_of, seconds_of, timestamp


def status_of(
    draft: Draft, counts: Counts, marks: Mapping[str, str], now: float, *, admitted: bool
) -> Object:
    """The whole status. ``marks`` are what Volcano's tools look for in controlledResources."""
    old = draft.job.status
    changed = draft.phase != old.state.phase
    since = timestamp(now) if changed else old.state.last_transition_time
    message, end = with_end(draft.message, draft.end)
    state: Object = {"phase": str(draft.phase), "lastTransitionTime": since}
    if draft.reason:
        state["reason"] = draft.reason
    if message:
        state["message"] = message
    status: Object = {"state": state, "conditions": _conditions(draft, since, changed)}
    status["controlledResources"] = {**marks, STATE_KEY: encode_state(_recorded(draft, end))}
    numbers = {
        "minAvailable": draft.job.spec.min_available,
        "version": draft.version,
        "retryCount": draft.retry,
        **msgspec.structs.asdict(counts),
    }
    status.update({name: number for name, number in numbers.items() if number})
    if by_task := _task_counts(draft):
        status["taskStatusCount"] = by_task
    if duration := _running_duration(draft, now, admitted):
        status["runningDuration"] = duration
    return status


def difference(old: Object, new: Object) -> Object | None:
    """The merge patch that makes ``old`` into ``new``, or None if they are the same."""
    patch: Object = {}
    for key in old.keys() - new.keys():
        patch[key] = None
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner is not None:
                patch[key] = inner
        elif before != value or key not in old:
            patch[key] = value
    return patch or None


def only_informs(old: Object, patch: Object) -> bool:
    """Whether a patch of the status ``old`` decides nothing.

    It says how many pods are in which phase, which live and which have Succeeded, what the Job
    waits for, and what Volcano's tools look for. It may come late: pods and PodGroup tell the same,
    except of pods that somebody deletes just before the controller dies.
    """
    if patch.keys() - _INFORMING or patch.get("state", {}).keys() - {"reason", "message"}:
        return False
    marks = patch.get("controlledResources", {})
    if STATE_KEY not in marks:
        return True
    before = (old.get("controlledResources") or {}).get(STATE_KEY, "")
    return differ_in_pods_only(before, marks[STATE_KEY] or "")


_INFORMING = {
    *Counts.__struct_fields__,
    "taskStatusCount",
    "state",
    "controlledResources",
    "runningDuration",
}


def _recorded(draft: Draft, end: int) -> Any:
    return msgspec.structs.replace(
        draft.state,
        alive=_texts(draft.alive),
        done=_texts(draft.done),
        end=end,
        version=draft.version,
        retry=draft.retry,
    )


def _texts(sets: Mapping[str, IndexSet]) -> dict[str, str]:
    return {task: str(indices) for task, indices in sorted(sets.items()) if indices}


def _conditions(draft: Draft, since: str, changed: bool) -> list[Object]:
    """One condition for each phase that there has been, newest last."""
    old = list(draft.job.status.conditions)
    if not changed and old:
        return old
    kept = [one for one in old if one.get("status") != draft.phase]
    return [*kept, {"status": str(draft.phase), "lastTransitionTime": since}]


def _task_counts(draft: Draft) -> Object:
    counts: Object = {}
    for task in sorted(draft.observed.tasks.keys() | draft.done.keys()):
        phases = {
            str(phase): len(indices)
            for phase, indices in sorted(draft.observed.task(task).by_phase.items())
            if phase is not PodPhase.TERMINATING
        }
        if done := len(cleaned_up(draft, task)):
            phases["Succeeded"] = phases.get("Succeeded", 0) + done
        if phases:
            counts[task] = {"phase": phases}
    return counts


def _running_duration(draft: Draft, now: float, admitted: bool) -> str:
    """How long the Job had been there when its pods were stopped; nothing while it has pods."""
    if draft.phase != draft.job.status.state.phase and draft.phase not in (
        Phase.PENDING,
        Phase.RUNNING,
    ):
        created = seconds_of(draft.job.metadata.creation_timestamp)
        return format_duration(duration_of(int(now) - int(created or now)))
    if draft.phase in ACTIVE and admitted:
        return ""
    return draft.job.status.running_duration
