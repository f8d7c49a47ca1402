"""Which restarts use up retries, and how many have been used up.

``retryCount`` in the status counts every restart; ``maxRetry`` is compared with those that count.
An annotation names events whose restarts do not (user case P58).
"""

from vcjob.api.names import UNCOUNTED_EVENTS, listed
from vcjob.api.types import Job
from vcjob.core.actions import Event
from vcjob.core.indices import LARGEST_INDEX, IndexSet

_DEFAULT_MAX_RETRY = 3


def max_retry(job: Job) -> int:
    """How often a Job may be restarted before it has failed; 0 stands for the default."""
    return job.spec.max_retry or _DEFAULT_MAX_RETRY


def uncounted_events(job: Job) -> list[str]:
    """The events whose restarts use up no retry, as the Job's annotation names them."""
    return listed(job.metadata.annotations.get(UNCOUNTED_EVENTS, ""))


def counted_under(event: str, exit_code: int | None) -> str:
    """The event that a restart counts as: what a policy for an exit code answers is a failure."""
    return Event.POD_FAILED if exit_code is not None else event


def used_up(retry: int, uncounted: IndexSet) -> int:
    """How many retries ``retry`` restarts have used up, those in ``uncounted`` being free."""
    return retry - len(uncounted & IndexSet.below(min(max(retry, 0), LARGEST_INDEX) + 1))


def is_uncounted(retry: int, uncounted: IndexSet) -> bool:
    """Whether the restart that led to ``retry`` used up none."""
    return 0 < retry <= LARGEST_INDEX and retry in uncounted


def with_restart(uncounted: IndexSet, retry: int, *, counts: bool) -> IndexSet:
    """``uncounted`` once the restart that led to ``retry`` counts, or does not.

    What a status has as retryCount may be any number: one beyond all indices counts.
    """
    if not 0 < retry <= LARGEST_INDEX:
        return uncounted
    one = IndexSet.of(retry)
    return uncounted - one if counts else uncounted | one
