"""What is known of a Job's pods: a summary that each change keeps up, in constant time.

Planning reads only the summary, so that a pass costs as much as there is to decide, not as much as
there are pods. ``recount`` makes the same summary anew; tests hold the two equal.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from vcjob.core.facts import PodFacts, PodPhase
from vcjob.core.indices import NO_INDICES, IndexSet

_Key = TypeVar("_Key")

Slot = tuple[str, int]
"""A pod's place in its Job: task and index."""


@dataclass
class TaskPods:
    """The pods of one task, as sets of indices.

    ``slots`` have a pod; ``by_phase``, ``by_version`` and ``by_retry`` divide them (an empty set is
    absent). ``ended`` divides those whose pod ended by itself; ``ready`` are those that run and are
    ready, ``failing`` those with a container that cannot start, ``unscheduled`` those that have got
    no node and are told why, ``marked`` those that a controller is about to delete.
    """

    slots: IndexSet = NO_INDICES
    ready: IndexSet = NO_INDICES
    failing: IndexSet = NO_INDICES
    unscheduled: IndexSet = NO_INDICES
    marked: IndexSet = NO_INDICES
    by_phase: dict[PodPhase, IndexSet] = field(default_factory=dict)
    by_version: dict[int, IndexSet] = field(default_factory=dict)
    by_retry: dict[int, IndexSet] = field(default_factory=dict)
    ended: dict[PodPhase, IndexSet] = field(default_factory=dict)

    def at(self, *phases: PodPhase) -> IndexSet:
        """Indices of pods in one of these phases."""
        return _union(self.by_phase.get(phase, NO_INDICES) for phase in phases)

    def older_than(self, version: int) -> IndexSet:
        """Indices of pods made for an earlier version of the Job."""
        return _union(these for made, these in self.by_version.items() if made < version)

    def before_retry(self, retry: int) -> IndexSet:
        """Indices of pods made before a retry."""
        return _union(these for made, these in self.by_retry.items() if made < retry)

    @property
    def ended_by_themselves(self) -> IndexSet:
        """Indices of pods that ended without anybody's doing."""
        return _union(self.ended.values())

    def add(self, facts: PodFacts) -> None:
        """Count a pod."""
        one = IndexSet.of(facts.index)
        self.slots |= one
        if facts.ready:
            self.ready |= one
        if facts.failing:
            self.failing |= one
        if facts.unscheduled:
            self.unscheduled |= one
        if facts.marked:
            self.marked |= one
        _add(self.by_phase, facts.phase, one)
        _add(self.by_version, facts.version, one)
        _add(self.by_retry, facts.retry, one)
        if facts.ended:
            _add(self.ended, facts.ended, one)

    def take_out(self, facts: PodFacts) -> None:
        """No longer count a pod."""
        one = IndexSet.of(facts.index)
        self.slots -= one
        self.ready -= one
        self.failing -= one
        self.unscheduled -= one
        self.marked -= one
        _take(self.by_phase, facts.phase, one)
        _take(self.by_version, facts.version, one)
        _take(self.by_retry, facts.retry, one)
        if facts.ended:
            _take(self.ended, facts.ended, one)

    def change(self, old: PodFacts, new: PodFacts) -> None:
        """Count a pod as it is now: ``take_out`` and ``add``, but only where the two differ.

        Of a pod that goes on to its next phase most stays as it is, and what is done to a set costs
        the more the more pods there are.
        """
        one = IndexSet.of(new.index)
        if old.ready != new.ready:
            self.ready = self.ready | one if new.ready else self.ready - one
        if bool(old.failing) != bool(new.failing):
            self.failing = self.failing | one if new.failing else self.failing - one
        if bool(old.unscheduled) != bool(new.unscheduled):
            changed = self.unscheduled
            self.unscheduled = changed | one if new.unscheduled else changed - one
        if old.marked != new.marked:
            self.marked = self.marked | one if new.marked else self.marked - one
        _move(self.by_phase, old.phase, new.phase, one)
        _move(self.by_version, old.version, new.version, one)
        _move(self.by_retry, old.retry, new.retry, one)
        _move(self.ended, old.ended, new.ended, one)


@dataclass
class Observed:
    """The pods of one Job.

    ``attention`` are places of pods that a policy may have something to say about, until it was
    asked (also if they have vanished meanwhile). ``gone`` is what was last known of pods that have
    vanished, until that was taken note of.
    """

    pods: dict[Slot, PodFacts] = field(default_factory=dict)
    tasks: dict[str, TaskPods] = field(default_factory=dict)
    attention: set[Slot] = field(default_factory=set)
    gone: dict[Slot, PodFacts] = field(default_factory=dict)

    def set(self, facts: PodFacts) -> None:
        """A pod has appeared or changed."""
        slot = (facts.task, facts.index)
        old = self.pods.get(slot)
        if old is not None and old.uid != facts.uid:
            self.remove(old)
            old = None
        if old is None:
            self._put_in(facts)
        else:
            if old.ended and not facts.ended:
                facts = msgspec.structs.replace(facts, ended=old.ended)
            self.pods[slot] = facts
            self.tasks[facts.task].change(old, facts)
        if facts.needs_decision and (old is None or _differs(old, facts)):
            self.attention.add(slot)

    def remove(self, facts: PodFacts) -> None:
        """A pod is no more."""
        slot = (facts.task, facts.index)
        old = self.pods.get(slot)
        if old is not None and old.uid == facts.uid:
            self._take_out(old)
            self.gone[slot] = old

    def task(self, name: str) -> TaskPods:
        """The pods of a task, none if it has none."""
        return self.tasks.get(name) or TaskPods()

    def counts(self) -> Counter[PodPhase]:
        """How many pods are in each phase."""
        total: Counter[PodPhase] = Counter()
        for pods in self.tasks.values():
            for phase, indices in pods.by_phase.items():
                total[phase] += len(indices)
        return total

    def _put_in(self, facts: PodFacts) -> None:
        self.pods[facts.task, facts.index] = facts
        self.tasks.setdefault(facts.task, TaskPods()).add(facts)

    def _take_out(self, facts: PodFacts) -> None:
        del self.pods[facts.task, facts.index]
        task = self.tasks[facts.task]
        task.take_out(facts)
        if not task.slots:
            del self.tasks[facts.task]


def recount(pods: Iterable[PodFacts]) -> Observed:
    """The summary of ``pods``, made anew."""
    observed = Observed()
    for facts in pods:
        observed.set(facts)
    return observed


def _differs(old: PodFacts, new: PodFacts) -> bool:
    """Whether a policy may now answer otherwise."""
    return (old.ended, old.evicted, old.exit_codes, old.restarts) != (
        new.ended,
        new.evicted,
        new.exit_codes,
        new.restarts,
    )


def _union(sets: Iterable[IndexSet]) -> IndexSet:
    union = NO_INDICES
    for these in sets:
        union |= these
    return union


def _add(groups: dict[_Key, IndexSet], key: _Key, indices: IndexSet) -> None:
    groups[key] = groups.get(key, NO_INDICES) | indices


def _move(
    groups: dict[_Key, IndexSet], old: _Key | None, new: _Key | None, indices: IndexSet
) -> None:
    if old == new:
        return
    if old is not None:
        _take(groups, old, indices)
    if new is not None:
        _add(groups, new, indices)


def _take(groups: dict[_Key, IndexSet], key: _Key, indices: IndexSet) -> None:
    groups[key] -= indices
    if not groups[key]:
        del groups[key]
