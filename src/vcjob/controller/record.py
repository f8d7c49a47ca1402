"""What the controller knows of one Job."""

from dataclasses import dataclass, field

from vcjob.api.kinds import Kind
from vcjob.api.types import Job, Object
from vcjob.controller.cluster import NotFound
from vcjob.controller.repair_pace import RepairPace
from vcjob.controller.status_pace import StatusPace
from vcjob.core.blueprint import Blueprint
from vcjob.core.draft import Told
from vcjob.core.observed import Observed, Slot
from vcjob.core.reasons import Trouble
from vcjob.plugins.base import KeyPair


@dataclass
class Record:
    """One Job. ``obj`` and ``job`` are None until it has been seen, and again once it is gone.

    ``malformed`` is why it cannot be read as a whole. ``removing`` are UIDs of pods that we asked
    to delete and that do not show it yet. ``trouble`` is what the last attempt failed for, to be
    tried again at ``retry_at`` (of the steady clock); ``attempts`` counts those that failed for
    trouble, ``failures`` other failures in a row. ``key_pairs`` are those made for the Job or
    found, by name. ``warned`` are the warnings that were told. ``pace`` is how often its
    status may be written, ``repairs`` how often its objects may be put right.
    """

    uid: str
    obj: Object | None = None
    job: Job | None = None
    malformed: str = ""
    observed: Observed = field(default_factory=Observed)
    owned: dict[tuple[Kind, str], Object] = field(default_factory=dict)
    group: Object | None = None
    commands: dict[str, Object] = field(default_factory=dict)
    removing: dict[Slot, str] = field(default_factory=dict)
    blueprint: Blueprint | None = None
    blueprint_of: tuple[object, str] = ((), "")
    warned: frozenset[Told] = frozenset()
    key_pairs: dict[str, KeyPair] = field(default_factory=dict)
    trouble: Trouble | None = None
    retry_at: float = 0.0
    attempts: int = 0
    failures: int = 0
    pace: StatusPace = field(default_factory=StatusPace)
    repairs: RepairPace = field(default_factory=RepairPace)

    @property
    def there(self) -> Object:
        """The Job, as it is needed in the middle of something; raises NotFound once it is gone."""
        if self.obj is None:
            raise NotFound("it was deleted meanwhile")
        return self.obj

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known any more."""
        return not (self.obj or self.observed.pods or self.owned or self.group or self.commands)
