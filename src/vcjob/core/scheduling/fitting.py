"""Whether pods fit the nodes of a cluster: best fit, hardest pods first.

Identical pods are handled by count, so that the price is that of nodes times kinds of pods. What is
found to fit does fit; that something does not can be wrong where pods of several shapes would need
a cleverer arrangement. The scheduler that binds the pods may arrange them otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from vcjob.core.scheduling.amounts import Amounts, listed
from vcjob.core.scheduling.nodes import NodeFacts, objection
from vcjob.core.scheduling.places import Gang, Wait
from vcjob.core.scheduling.shapes import BILLION, Demands, PodShape

Room = Mapping[str, int]
"""What is left of a node, in billionths, by resource."""

_MOST_REASONS = 4


class Nodes:
    """The nodes of a cluster as a place where gangs start.

    Args:
        nodes: the nodes, by name.
        room: what is left of each; without it, they are taken to be empty. Of a resource that is
            not named there is none.
        eligible: remembers which nodes take which pods, across instances on the same nodes.
    """

    def __init__(
        self,
        nodes: Mapping[str, NodeFacts],
        room: Mapping[str, Room] | None = None,
        eligible: dict[Demands, dict[str, None]] | None = None,
    ) -> None:
        self._nodes = nodes
        self._room = (
            {name: node.allocatable for name, node in nodes.items()} if room is None else dict(room)
        )
        self._eligible = {} if eligible is None else eligible
        self._fits: dict[PodShape, dict[str, int]] = {}
        self._empty = self if room is None else None
        self._capacity: dict[str, Fraction] | None = None

    @property
    def capacity(self) -> Amounts:
        """All that the nodes that are ready and not cordoned have."""
        if self._capacity is None:
            total: Counter[str] = Counter()
            for node in self._nodes.values():
                if node.is_ready and not node.is_cordoned:
                    total.update(node.allocatable)
            self._capacity = {name: Fraction(amount, BILLION) for name, amount in total.items()}
        return self._capacity

    def never(self, gang: Gang) -> Wait | None:
        """Why a gang would not fit even if nothing else ran; None if it would."""
        if self._empty is None:
            self._empty = Nodes(self._nodes, None, self._eligible)
        found = self._empty._shortage(gang, "even if nothing else ran")
        return Wait("ExceedsCluster", f"{gang.name} needs {found}") if found else None

    def obstacle(self, gang: Gang) -> Wait | None:
        """Why a gang does not fit now; None if it does."""
        found = self._shortage(gang, "now")
        return Wait("NotEnoughResources", f"{gang.name} needs {found}") if found else None

    def take(self, gang: Gang) -> None:
        """A gang starts: what it needs is no longer there."""
        self.place(gang.pods)

    def has_room(self, shape: PodShape) -> bool:
        """Whether a node has room for one pod of a shape."""
        return bool(self._most_at_each(shape))

    def place(self, pods: Iterable[tuple[PodShape, int]]) -> dict[PodShape, dict[str, int]]:
        """Put as many of these pods as fit onto nodes; returns how many of each went where."""
        placed, room = self._arranged(pods)
        if room and self._empty is self:
            self._empty = None  # not any more
        self._room.update(room)
        for shape, fits in self._fits.items():
            for name in room.keys() & self._candidates(shape.demands).keys():
                _note(fits, name, _most(self._room[name], shape))
        return placed

    def keep_free(self, shape: PodShape) -> None:
        """Give no more room on the nodes that take pods of a shape."""
        for name in self._candidates(shape.demands):
            self._room[name] = {}
        self._fits.clear()
        if self._empty is self:
            self._empty = None  # not any more

    def _shortage(self, gang: Gang, when: str) -> str | None:
        """What a gang lacks, as the rest of a sentence; None if it lacks nothing."""
        for shape, count in gang.pods:
            found = sum(self._most_at_each(shape).values())
            if found < count:
                return self._told(shape, count, found, when)
        if len(gang.pods) < 2:
            return None
        placed, _ = self._arranged(gang.pods)
        for shape, count in gang.pods:
            found = sum(placed.get(shape, {}).values())
            if found < count:
                return self._told(shape, count, found, f"beside its other pods {when}")
        return None

    def _told(self, shape: PodShape, count: int, found: int, when: str) -> str:
        requests = shape.shown()
        asks = listed(requests, list(requests))
        if count == 1:
            pods, has = f"a pod that requests {asks or 'nothing'}", "none"
        else:
            pods = f"{count} pods that request {f'{asks} each' if asks else 'nothing'}"
            has = f"{found} of them" if found else "none of them"
        return (
            f"room for {pods} to start; the cluster has room for {has} {when}{self._reasons(shape)}"
        )

    def _reasons(self, shape: PodShape) -> str:
        """Why nodes are out of the question, in brackets, most frequent first."""
        if not self._nodes:
            return " (it has no nodes)"
        objections = Counter(objection(node, shape.demands) for node in self._nodes.values())
        del objections[""]
        if not objections:
            return ""
        ordered = sorted(objections.items(), key=lambda one: (-one[1], one[0]))
        shown = [f"{number} {why}" for why, number in ordered[:_MOST_REASONS]]
        if more := sum(number for _, number in ordered[_MOST_REASONS:]):
            shown.append(f"{more} for other reasons")
        return f" (nodes: {len(self._nodes)}, of which {', '.join(shown)})"

    def _arranged(
        self, pods: Iterable[tuple[PodShape, int]]
    ) -> tuple[dict[PodShape, dict[str, int]], dict[str, Room]]:
        """Which pods go where, and what is then left of the nodes that got some."""
        wanted: Counter[PodShape] = Counter()
        for shape, count in pods:
            wanted[shape] += count
        placed: dict[PodShape, dict[str, int]] = {}
        room: dict[str, Room] = {}
        for shape in sorted(wanted, key=self._hardness):
            fits = self._most_at_each(shape)
            if room:
                fits = dict(fits)
                for name in room.keys() & fits.keys():
                    _note(fits, name, _most(room[name], shape))
            left = wanted[shape]
            for name in sorted(fits, key=lambda one: (fits[one], one)):
                if left <= 0:
                    break
                count = min(fits[name], left)
                left -= count
                room[name] = _without(room.get(name) or self._room[name], shape, count)
                placed.setdefault(shape, {})[name] = count
        return placed, room

    def _hardness(self, shape: PodShape) -> tuple[int, Fraction, str]:
        """Pods with the smallest value are placed first: few nodes, then large requests."""
        shares = [
            amount / self.capacity[name]
            for name, amount in shape.shown().items()
            if self.capacity.get(name)
        ]
        return (
            len(self._candidates(shape.demands)),
            -max(shares, default=Fraction(0)),
            repr(shape),
        )

    def _most_at_each(self, shape: PodShape) -> dict[str, int]:
        """How many pods of a shape each node has room for; nodes with none are left out."""
        if shape not in self._fits:
            fits: dict[str, int] = {}
            for name in self._candidates(shape.demands):
                _note(fits, name, _most(self._room[name], shape))
            self._fits[shape] = fits
        return self._fits[shape]

    def _candidates(self, demands: Demands) -> dict[str, None]:
        """The nodes that take pods of these demands."""
        if demands not in self._eligible:
            self._eligible[demands] = dict.fromkeys(
                name for name, node in self._nodes.items() if not objection(node, demands)
            )
        return self._eligible[demands]


def _most(room: Room, shape: PodShape) -> int:
    """How many pods of a shape fit."""
    return max(min(room.get(name, 0) // amount for name, amount in shape.requests), 0)


def _note(fits: dict[str, int], name: str, count: int) -> None:
    if count:
        fits[name] = count
    else:
        fits.pop(name, None)


def _without(room: Room, shape: PodShape, count: int) -> Room:
    less = dict(room)
    for name, amount in shape.requests:
        less[name] -= amount * count
    return less
