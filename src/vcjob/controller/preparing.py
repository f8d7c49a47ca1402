"""What a plan is made from: a Job's blueprint, and what there is around its pods."""

from collections.abc import Callable, Collection, Mapping

from vcjob.api.kinds import POD, Kind
from vcjob.api.problems import Problem, errors, format_path, sentence
from vcjob.api.queues import DEFAULT_QUEUE
from vcjob.api.types import Job, MalformedObject, Object
from vcjob.controller.key_pairs import stored_pairs
from vcjob.controller.reading import without_templates
from vcjob.controller.record import Record
from vcjob.controller.records import Records
from vcjob.core.actions import FINAL
from vcjob.core.annotations import IGNORED, is_read_here
from vcjob.core.blueprint import Blueprint
from vcjob.core.draft import Told
from vcjob.core.permission import as_allowed
from vcjob.core.reasons import MALFORMED, PLUGIN_WARNING, Trouble
from vcjob.core.scheduling.priorities import BUILT_IN
from vcjob.core.supporting import kind_of
from vcjob.core.surroundings import Surroundings
from vcjob.plugins.base import PluginError
from vcjob.plugins.registry import Registry

Check = Callable[[Kind, Object], list[Problem]]


def no_problems(kind: Kind, obj: Object) -> list[Problem]:
    """For clusters: their API server checks each object."""
    return []


class Preparer:
    """Prepares Jobs for planning.

    Args:
        records: what is known.
        plugins: the plugins that Jobs may use.
        allowed_annotations: those of our annotations that widen rights and work here; None: all.
        check: the problems of an object, asked of the first pod of each task and all but pods.
        sees_classes: whether it is known which PriorityClasses there are.
    """

    def __init__(
        self,
        records: Records,
        plugins: Registry,
        allowed_annotations: Collection[str] | None,
        check: Check = no_problems,
        *,
        sees_classes: bool = True,
    ) -> None:
        self._records = records
        self._plugins = plugins
        self._allowed = allowed_annotations
        self._sees_classes = sees_classes
        self._check = check

    def blueprint(self, record: Record) -> tuple[Blueprint, str]:
        """The Job's blueprint, made anew when what it is made from has changed; what is wrong."""
        assert record.obj is not None
        assert record.job is not None
        metadata = record.obj["metadata"]
        forwarding = self._is_spread(record.job)
        basis = (
            record.obj.get("spec"), metadata.get("annotations"), metadata.get("labels"), forwarding
        )  # fmt: skip
        blueprint, malformed = record.blueprint, record.blueprint_of[1]
        if blueprint is None or record.blueprint_of[0] != basis:
            malformed = record.malformed
            job, _ = as_allowed(record.job, self._allowed)
            try:
                blueprint = Blueprint(job, self._plugins, record.key_pairs, forwarding=forwarding)
                malformed = malformed or self._impossible(blueprint)
            except MalformedObject as error:
                malformed = malformed or str(error)
                blueprint = Blueprint(without_templates(job), self._plugins)
        if blueprint.key_pairs:
            record.key_pairs |= stored_pairs(blueprint.key_pairs, record.owned)
            blueprint = blueprint.with_key_pairs(record.key_pairs)
        record.blueprint, record.blueprint_of = blueprint, (basis, malformed)
        return blueprint, malformed

    def _impossible(self, blueprint: Blueprint) -> str:
        """Why nobody would take an object of the Job, empty if there is no reason known."""
        for obj in blueprint.supporting_objects():
            kind = kind_of(obj)
            if why := self._first_problem(kind, obj):
                return f"{kind} {obj['metadata']['name']} cannot be made: {why}"
        for task in blueprint.job.spec.tasks:
            try:
                pod = blueprint.pod(task.name, 0)
            except PluginError:
                continue  # told when it is to be made
            if why := self._first_problem(POD, pod):
                return f'pods of task "{task.name}" cannot be made: {why}'
        return ""

    def _first_problem(self, kind: Kind, obj: Object) -> str:
        for problem in errors(self._check(kind, obj)):
            return f"{format_path(problem.path)}: {sentence(problem)}"
        return ""

    def _is_spread(self, job: Job) -> bool:
        """Whether a Job's queue is spread over several clusters."""
        queue = self._records.queues.get(job.spec.queue) or {}
        return bool((queue.get("spec") or {}).get("extendClusters"))

    def surroundings(
        self, record: Record, blueprint: Blueprint, malformed: str, *, attempt: bool
    ) -> Surroundings:
        """What there is around a Job's pods; ``attempt`` is whether its trouble is tried again."""
        assert record.job is not None
        namespace = record.job.metadata.namespace
        absent = tuple(
            claim.name
            for claim in blueprint.claims
            if claim.spec is None and (namespace, claim.name) not in self._records.claims
        )
        return Surroundings(
            group=record.group,
            owned=record.owned,
            commands=tuple(record.commands.values()),
            priorities=self._records.priorities,
            queue_exists=(record.job.spec.queue or DEFAULT_QUEUE) in self._records.queues,
            absent_claims=absent,
            absent_classes=self._absent_classes(blueprint),
            forwarding=self._is_spread(record.job),
            trouble=Trouble(MALFORMED, malformed) if malformed else record.trouble,
            attempt=attempt and not malformed,
        )

    def _absent_classes(self, blueprint: Blueprint) -> Mapping[str, str]:
        """Which PriorityClasses of a Job's pods there are not; none where nobody may look."""
        if not self._sees_classes:
            return {}
        there = self._records.priorities.keys() | BUILT_IN.keys()
        return {k: v for k, v in blueprint.priority_classes.items() if k not in there}

    def warnings(self, record: Record, blueprint: Blueprint) -> list[Told]:
        """What plugins warn of and what is ignored, once: it stands in no status."""
        assert record.job is not None
        if record.job.status.state.phase in FINAL:
            return []
        _, found = as_allowed(record.job, self._allowed)
        warnings = [*found, *(_told(one) for one in blueprint.problems if one.warning)]
        new = [one for one in dict.fromkeys(warnings) if one not in record.warned]
        record.warned = frozenset(warnings)
        return new


def _told(problem: Problem) -> Told:
    reason = IGNORED if is_read_here(problem.path) else PLUGIN_WARNING
    return Told("Warning", reason, sentence(problem))
