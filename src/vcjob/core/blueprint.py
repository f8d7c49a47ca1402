"""A Job's blueprint: every object that the Job wants to exist, prepared once per generation.

Host lists, shared environment and templates are worked out here; a pod is then cheap to make.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from vcjob.api import names
from vcjob.api.kinds import JOB
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.core.annotations import annotation_problems
from vcjob.core.claims import Claim, claim_objects, claims_of
from vcjob.core.podgroup import pod_group
from vcjob.core.pods import PodFactory, copied_labels, wanted_labels
from vcjob.core.usage import pod_usage
from vcjob.plugins.base import AddToPod, KeyPair, KeyPairNeed, PluginError
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.registry import Registry
from vcjob.plugins.selection import Selected, select


class Blueprint:
    """What one generation of a Job's spec wants. Objects that it hands out must not be changed.

    ``problems`` are those of plugins and options. With an error among them the controller does not
    begin; ``render`` shows what there is nevertheless. ``claims`` are the Job's volumes;
    ``key_pairs`` what plugins want to be supplied, ``lacking_key_pairs`` those of them that were
    not; ``marks`` belong into ``status.controlledResources``.
    """

    def __init__(
        self,
        job: Job,
        registry: Registry,
        key_pairs: Mapping[str, KeyPair] | None = None,
        *,
        forwarding: bool = False,
    ) -> None:
        """Prepare everything; raises MalformedObject if a pod template has an impossible shape.

        ``key_pairs`` are the keys that plugins asked for, by name. ``forwarding`` is true if the
        Job's queue has ``spec.extendClusters``.
        """
        self.job = job
        self.claims: tuple[Claim, ...] = tuple(claims_of(job))
        self._registry, self._forwarding = registry, forwarding
        self._supplied = dict(key_pairs or {})
        self._owner = owner_reference(job)
        selection = select(job, registry, key_pairs)
        problems = [*selection.problems, *_option_problems(job)]
        objects: list[Object] = list(claim_objects(list(self.claims)))
        additions: list[AddToPod] = []
        needs: list[KeyPairNeed] = []
        marks: dict[str, str] = {}
        for one in selection.plugins:
            try:
                problems += one.plugin.problems(one.request)
                needs += one.plugin.key_pairs(one.request)
                made = list(one.plugin.objects(one.request))
                addition = one.plugin.pods(one.request)
            except Exception as error:  # a plugin may come from anywhere
                problems.append(Problem(str(_failure(one, error)), one.request.path))
                continue
            problems += _made_twice(one, objects, made)
            objects += made
            if addition:
                additions.append(_guarded(one, addition))
            if one.plugin.marked:
                marks[names.plugin_mark(one.plugin.name)] = one.plugin.name
        marks.update({names.claim_mark(claim.name): claim.name for claim in self.claims})
        self.problems = tuple(problems)
        self.key_pairs = tuple(needs)
        self.lacking_key_pairs = tuple(one for one in needs if one.name not in self._supplied)
        self.marks: Mapping[str, str] = marks
        self._objects = tuple(map(self._owned, objects))
        self._factories: dict[str, PodFactory] = {}
        for task in job.spec.tasks:
            if task.name not in self._factories:
                self._factories[task.name] = PodFactory(
                    job, task, self._owner, list(self.claims), additions, forwarding=forwarding
                )
        self._usage = {name: pod_usage(made.spec) for name, made in self._factories.items()}
        # The one that was asked for last, as each pass over the Job asks for it.
        self._pod_group: tuple[tuple[dict[str, int], frozenset[str]], Object] | None = None

    @property
    def priority_classes(self) -> Mapping[str, str]:
        """The PriorityClasses of the pods, each with the first task that names it."""
        named: dict[str, str] = {}
        for task, made in self._factories.items():
            if name := made.spec.get("priorityClassName"):
                named.setdefault(str(name), task)
        return named

    def with_key_pairs(self, key_pairs: Mapping[str, KeyPair]) -> "Blueprint":
        """The same with these keys; itself if it has them already."""
        if key_pairs == self._supplied:
            return self
        return Blueprint(self.job, self._registry, key_pairs, forwarding=self._forwarding)

    def supporting_objects(self) -> tuple[Object, ...]:
        """Claims and plugins' objects, in the order in which they are to be created.

        They are to exist before the first pod and until the Job is deleted.
        """
        return self._objects

    def pod_group(
        self, priorities: Mapping[str, int] | None = None, waiting: Collection[str] = ()
    ) -> Object:
        """The PodGroup. ``priorities`` are values of PriorityClasses by name.

        Tasks in ``waiting`` (their ``dependsOn`` is not yet fulfilled) do not count.
        """
        asked = (dict(priorities or {}), frozenset(waiting))
        if self._pod_group is None or self._pod_group[0] != asked:
            made = pod_group(self.job, self._owner, self._usage, *asked)
            self._pod_group = asked, made
        return self._pod_group[1]

    def pod(self, task: str, index: int, version: int = 0, retry_count: int = 0) -> Object:
        """The pod of one replica; raises KeyError if there is no such task, PluginError."""
        return self._factories[task].pod(index, version, retry_count)

    def pods(self, version: int = 0, retry_count: int = 0) -> Iterator[Object]:
        """The pods of all replicas, task by task."""
        for task in self.job.spec.tasks:
            for index in range(task.replicas):
                yield self.pod(task.name, index, version, retry_count)

    def _owned(self, obj: Object) -> Object:
        """A supporting object with what marks it as this Job's."""
        metadata = obj["metadata"]
        labels = {**metadata.get("labels", {}), names.MANAGED_BY: names.MANAGED_BY_VALUE}
        return {
            **obj,
            "metadata": {
                **metadata,
                "namespace": self.job.metadata.namespace,
                "labels": labels,
                "ownerReferences": [self._owner],
            },
        }


def owner_reference(job: Job) -> Object:
    """The reference by which everything that is made for a Job goes with it."""
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _made_twice(one: Selected, before: list[Object], made: list[Object]) -> Iterator[Problem]:
    """Two objects of one kind and name would for ever be changed into each other."""
    there = {(obj["kind"], obj["metadata"]["name"]) for obj in before}
    for obj in made:
        key = (obj["kind"], obj["metadata"]["name"])
        if key in there:
            message = f"the plugin {one.plugin.name} makes {key[0]} {key[1]}, which is made already"
            yield Problem(message, one.request.path, "give it a name of its own")
        there.add(key)


def _option_problems(job: Job) -> Iterator[Problem]:
    for problem in annotation_problems(job):
        yield msgspec.structs.replace(problem, warning=True)
    path = ("metadata", "annotations", names.COPY_LABELS)
    copied = copied_labels(job)
    for key in wanted_labels(job):
        if key.startswith(names.VOLCANO_PREFIX):
            hint = "pods get their own labels of this kind"
            yield Problem(f'the label "{key}" is not copied', path, hint, warning=True)
        elif key not in copied:
            hint = "add it to metadata.labels"
            yield Problem(f'the Job has no label "{key}" to copy', path, hint, warning=True)


def _guarded(one: Selected, add: AddToPod) -> AddToPod:
    def guarded(pod: PodDraft) -> None:
        try:
            add(pod)
        except Exception as error:  # a plugin may come from anywhere
            raise _failure(one, error) from error

    return guarded


def _failure(one: Selected, error: Exception) -> PluginError:
    if isinstance(error, PluginError):
        return error
    return PluginError(f"the plugin {one.plugin.name} failed: {type(error).__name__}: {error}")
