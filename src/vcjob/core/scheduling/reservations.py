"""What gangs on a cluster hold room for though it has no node yet.

Until it has started, that is a gang's whole minimum; then what may be bound but is not, and the
places of pods that were deleted and are to be made anew. Where a pod under deletion still takes
room, that room is what is held.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from vcjob.core.scheduling.amounts import Amounts, add
from vcjob.core.scheduling.booked import BookedGang, BookedPod
from vcjob.core.scheduling.job_pods import JobPods
from vcjob.core.scheduling.overlooked import Overlooked
from vcjob.core.scheduling.shapes import PodShape


def has_begun(gang: BookedGang) -> bool:
    """Whether anything of an admitted gang has started, or may."""
    return bool(gang.started() or gang.let_go.total() or gang.phase != "Inqueue")


def is_to_start(gang: BookedGang) -> bool:
    """Whether a gang is admitted and its minimum has not started."""
    return gang.phase == "Inqueue" and gang.started() < gang.least


def is_short(gang: BookedGang) -> bool:
    """Whether a gang that has started lacks some of its minimum again."""
    has_started = gang.group is not None and not gang.waits and gang.phase != "Inqueue"
    return has_started and gang.started() + gang.let_go.total() < gang.least


class Reservations:
    """What gangs hold, by what their Jobs tell of their pods.

    Args:
        jobs: the pods of all Jobs.
        priorities: values of PriorityClasses by name.
        overlooked: pods for which nothing is held, once their gang has started.
    """

    def __init__(
        self, jobs: JobPods, priorities: Mapping[str, int], overlooked: Overlooked
    ) -> None:
        self._jobs = jobs
        self._priorities = priorities
        self._overlooked = overlooked

    def held(self, gang: BookedGang) -> Counter[PodShape]:
        """The pods that a gang holds room for though they have no node yet."""
        by_task = Counter(gang.let_go)
        if is_to_start(gang):
            by_task += self.lacking(gang)
        else:
            for task in [*by_task]:
                if self._overlooked.is_overlooked((gang.uid, task)):
                    del by_task[task]
            if not gang.waits:
                by_task += self.vacated(gang)
        return self._shapes(gang, by_task)

    def needed(self, gang: BookedGang) -> Counter[PodShape]:
        """What a gang that waits needs room for; pods of an earlier attempt give none."""
        return self._shapes(gang, self._lacking(gang, Counter()))

    def lacking(self, gang: BookedGang) -> Counter[str]:
        """Those of an admitted gang's minimum that have not started, and may not yet, by task."""
        return self._lacking(gang, gang.leaving)

    def vacated(self, gang: BookedGang) -> Counter[str]:
        """The places, by task, that are held for pods made anew until the minimum is full."""
        left = gang.least - gang.started() - gang.let_go.total() - gang.leaving.total()
        return _first(Counter(pod.task for pod in gang.vacated.values()), left)

    def lost(self, gang: BookedGang) -> dict[str, str]:
        """Names and tasks of pods of the minimum of a gang that had started and lacks some.

        They took places, though nobody who keeps these books now may have seen them. Of those that
        can be meant the ones that are there and wait to be let go come first.
        """
        if not is_short(gang):
            return {}
        held = {pod.key[1] for pod in gang.pods.values() if pod.is_held}
        others = {pod.key[1] for pod in gang.pods.values()} - held
        wanted = [one for one in self._jobs.wanted(gang) if one[0] not in others]
        lacking, found = self.lacking(gang), {}
        for name, task in sorted(wanted, key=lambda one: one[0] not in held):
            if lacking[task] > 0:
                lacking[task] -= 1
                found[name] = task
        return found

    def of_minimum(self, gang: BookedGang, held: Iterable[BookedPod]) -> list[BookedPod]:
        """Those of the pods that make the minimum full, in their order."""
        needed = gang.least - gang.started() - gang.let_go.total()
        lacking = Counter(self._jobs.minimum(gang, self._priorities))
        lacking.subtract(gang.standing)
        lacking.subtract(gang.let_go)
        chosen: list[BookedPod] = []
        others: list[BookedPod] = []
        for pod in held:
            (chosen if lacking[pod.task] > 0 else others).append(pod)
            lacking[pod.task] -= 1
        return [*chosen, *others][: max(needed, 0)]

    def amounts(self, gang: BookedGang) -> Amounts:
        """What a gang takes of its queue: what is bound, and what it holds."""
        if gang.phase == "Inqueue" and not has_begun(gang) and not gang.bound:
            return gang.minimum
        total = dict(gang.bound)
        for shape, count in self.held(gang).items():
            add(total, shape.shown(), count)
        return {name: amount for name, amount in total.items() if amount > Fraction(0)}

    def _lacking(self, gang: BookedGang, covered: Mapping[str, int]) -> Counter[str]:
        left = gang.least - gang.started() - gang.let_go.total() - sum(covered.values())
        lacking = Counter(self._jobs.minimum(gang, self._priorities))
        for taken in (gang.standing, gang.let_go, covered):
            lacking.subtract(taken)
        return _first(lacking, left)

    def _shapes(self, gang: BookedGang, by_task: Mapping[str, int]) -> Counter[PodShape]:
        shapes: Counter[PodShape] = Counter()
        for task, count in by_task.items():
            if count > 0:
                shapes[self._jobs.shape(gang, task)] += count
        return shapes


def _first(counts: Mapping[str, int], most: int) -> Counter[str]:
    """As many as ``most`` of what is counted."""
    chosen: Counter[str] = Counter()
    for task, count in counts.items():
        if (part := min(count, most)) > 0:
            chosen[task] = part
            most -= part
    return chosen
