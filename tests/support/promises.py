"""What is promised of every life of a Job, looked at from outside at each write.

Nothing here asks the controller what it meant: the store, the Job's status and docs/lifecycle.md
are all that is compared. What is promised of statuses is in ``course.py``, of other writes in
``writes.py``, of a Job at rest in ``at_rest.py``.
"""

import asyncio

from course import Course
from faults import Faulty
from simulation import Simulation
from witness import Witness
from writes import Writes


class Promises:
    """Watches the Jobs of one name in a simulation; ``wrong`` tells what was broken.

    ``pending_since`` is when a pod was first seen Pending while everybody was at rest, by UID.
    """

    def __init__(self, simulation: Simulation, cluster: Faulty, name: str) -> None:
        self.wrong: list[str] = []
        self.witness = Witness(simulation, cluster, name)
        self.writes = Writes(self.witness, cluster, self.wrong)
        self.course = Course(self.witness, self.wrong)
        self.pending_since: dict[str, float] = {}
        self._followers: list[asyncio.Task[None]] = []

    def follow(self) -> None:
        """Look at all that is written from now on."""
        watched = (self.course.follow(), self.writes.follow_keys(), self.witness.follow())
        self._followers = [*map(asyncio.create_task, watched)]

    def stop(self) -> None:
        """Look no longer; a look that failed raises what it failed with."""
        for follower in self._followers:
            if follower.done():
                follower.result()
            follower.cancel()
