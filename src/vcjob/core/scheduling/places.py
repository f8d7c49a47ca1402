"""Where gangs start: what there is, and whether one more fits.

Two places are known: one machine, where only totals count (here), and the nodes of a cluster, where
each pod has to fit somewhere (``fitting``).
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

import msgspec

from vcjob.core.scheduling.amounts import Amounts, add, beyond, less, listed
from vcjob.core.scheduling.shapes import PodShape


class Wait(msgspec.Struct, frozen=True):
    """Why a gang cannot start: a reason in one word, and a sentence with the numbers."""

    reason: str
    message: str


class Gang(msgspec.Struct, frozen=True):
    """A PodGroup that waits for admission. ``created`` is in seconds since 1970.

    ``needs`` is what its minimum of pods requests, which counts for its queue. ``pods`` are those
    of its minimum that have no node yet, where pods are placed one by one. ``put_off`` is why it
    may not start at the moment, whatever room there is.
    """

    uid: str
    name: str
    queue: str
    needs: Amounts
    priority: int = 0
    created: float = 0.0
    pods: tuple[tuple[PodShape, int], ...] = ()
    put_off: Wait | None = None


class Place(Protocol):
    """Where gangs start."""

    @property
    def capacity(self) -> Amounts:
        """All that there is."""

    def never(self, gang: Gang) -> Wait | None:
        """Why a gang would not fit even if nothing else ran; None if it would."""

    def obstacle(self, gang: Gang) -> Wait | None:
        """Why a gang does not fit now; None if it does."""

    def take(self, gang: Gang) -> None:
        """A gang starts: what it needs is no longer there."""


class OneMachine:
    """A place where any pods run side by side as long as their sum fits.

    Requests are all that counts: a pod that requests nothing always fits, so that a laptop can run
    what was written for a cluster.

    Args:
        capacity: what the machine has; of a resource that is not named it has none.
        held: what gangs hold of it, in parts.
    """

    def __init__(self, capacity: Amounts, held: Iterable[Amounts] = ()) -> None:
        self.capacity = capacity
        self._held: dict[str, Fraction] = {}
        for amounts in held:
            add(self._held, amounts)

    def never(self, gang: Gang) -> Wait | None:
        """Why a gang would not fit even if nothing else ran; None if it would."""
        if short := beyond(gang.needs, self.capacity):
            message = f"{asked(gang, short)}; this machine has {listed(self.capacity, short)}"
            return Wait("ExceedsMachine", message)
        return None

    def obstacle(self, gang: Gang) -> Wait | None:
        """Why a gang does not fit now; None if it does."""
        left = less(self.capacity, self._held)
        if short := beyond(gang.needs, left):
            message = f"{asked(gang, short)}; this machine has {listed(left, short)} left"
            return Wait("NotEnoughResources", message)
        return None

    def take(self, gang: Gang) -> None:
        """A gang starts: what it needs is no longer there."""
        add(self._held, gang.needs)


def asked(gang: Gang, resources: list[str]) -> str:
    """What a gang needs of some resources, as the beginning of a sentence."""
    return f"{gang.name} needs {listed(gang.needs, resources)} to start"


def shortage(needs: Amounts, capacity: Amounts, used: Amounts) -> str:
    """What this machine lacks for one pod of no waiting gang, as a sentence; empty if it fits."""
    if short := beyond(needs, capacity):
        return f"it needs {listed(needs, short)}; this machine has {listed(capacity, short)}"
    left = less(capacity, used)
    if short := beyond(needs, left):
        return f"it needs {listed(needs, short)}; this machine has {listed(left, short)} left"
    return ""
