"""How often the objects of a Job are made or repaired while somebody else undoes it each time."""

from dataclasses import dataclass

from vcjob.core.draft import Told
from vcjob.core.supporting import Create, Step

AT_ONCE = 30
_SECONDS = 1.0


@dataclass
class RepairPace:
    """The budget of one Job: 30 times at once, then once a second. Times are of a steady clock.

    Two controllers that want different things would else write as fast as the server answers.
    ``told`` is whether somebody was told that this budget is used up.
    """

    told: bool = False
    _paid_until: float = float("-inf")

    def wait(self, now: float) -> float:
        """How long (s) the next time has to wait; 0: not at all."""
        return max(self._paid_until - (AT_ONCE - 1) * _SECONDS - now, 0.0)

    def spend(self, now: float) -> None:
        """Something is made or repaired now."""
        if self._paid_until <= now:
            self.told = False
        self._paid_until = max(self._paid_until, now) + _SECONDS


def contested(step: Step) -> Told:
    """That the budget is used up, with this as the next step."""
    name = step.object["metadata"]["name"] if isinstance(step, Create) else step.name
    return Told(
        "Warning",
        "Contested",
        f"{step.kind} {name} had to be made or put right again and again: if somebody else changes "
        "it, one of us has to leave it alone; until then it is done once a second",
    )
