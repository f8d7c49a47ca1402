"""Everything that must hold for a Job, on create and on update: what admission and validate ask.

Source: admission.md; deliberate differences: docs/compatibility.md.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from vcjob.api.names import OUR_PREFIX
from vcjob.api.problems import Problem, errors
from vcjob.api.schema.fields import check_fields
from vcjob.api.schema.job import JOB
from vcjob.api.types import Object
from vcjob.core.checks.annotations import check_annotations, check_changed_annotations
from vcjob.core.checks.names import check_names
from vcjob.core.checks.plugins import check_plugins, own_plugins
from vcjob.core.checks.policies import check_policies
from vcjob.core.checks.queues import check_references
from vcjob.core.checks.retries import check_retries
from vcjob.core.checks.subject import Lookup, Subject, subject_of
from vcjob.core.checks.tasks import check_tasks
from vcjob.core.checks.templates import check_templates
from vcjob.core.checks.update import check_changes
from vcjob.core.checks.volumes import check_volumes
from vcjob.plugins.registry import Registry

__all__ = ["Lookup", "check", "check_update"]

_MOST_ERRORS = 500
"""Nobody reads more, and what to do about each takes time to find out."""
_MORE = Problem("there are more problems than these")


def check(
    job: Object, lookup: Lookup | None = None, plugins: Registry | None = None
) -> list[Problem]:
    """The problems of a Job that is to be created; an error among them refuses it.

    All of them, but of hundreds of errors only the first ones, and that there are more.

    ``job`` may be as written or defaulted: defaults are filled in before the rules are asked, and
    paths are those of ``job``. Without ``lookup`` (no cluster) the rules that need one are left
    out. ``plugins`` are those that there are (None: only those that come with vcjob). Never
    raises, whatever JSON value ``job`` is; the work does not grow with replicas.
    """
    fields = check_fields(job, JOB)
    plugins = plugins or own_plugins()
    subject = subject_of(job, fields, plugins.requires)
    rules: Iterable[Problem] = chain(_rules(subject, plugins), check_retries(job, subject))
    if lookup is not None and isinstance(job, dict):
        rules = chain(rules, check_references(subject, lookup))
    return _together(fields, rules)


def check_update(old: Object, new: Object, plugins: Registry | None = None) -> list[Problem]:
    """The problems of changing a stored Job from ``old`` to ``new``, as with ``check``.

    Only what changes is judged: a finalizer can be taken off whatever a Job looks like, and what
    was wrong before refuses nothing else. Rules about queue, templates and policies are not
    asked again, as those parts cannot change.
    """
    same_spec = _part(old, "spec") == _part(new, "spec")
    if same_spec and _ours(old) == _ours(new):
        return []
    fields = check_fields(new, JOB)
    plugins = plugins or own_plugins()
    before = subject_of(old, [], plugins.requires)
    after = subject_of(new, fields, plugins.requires)
    of_plugins = [*_first(check_plugins(after, plugins))]
    annotated = [*check_annotations(after), *of_plugins]
    changed = [*check_changed_annotations(before, after, annotated)]
    if same_spec:
        return changed
    rules = chain(check_changes(before, after), _lasting(after), of_plugins, changed)
    problems = _together(fields, rules)
    return [*_new(problems, old, plugins)] if errors(problems) else problems


def _lasting(subject: Subject) -> Iterator[Problem]:
    """Rules about parts of a Job that may change."""
    yield from check_tasks(subject, exists=True)
    yield from check_names(subject)


def _new(problems: list[Problem], old: Object, plugins: Registry) -> Iterator[Problem]:
    """Problems that ``old`` has not: it may have been admitted before they were known."""
    fields = check_fields(old, JOB)
    subject = subject_of(old, fields, plugins.requires)
    rules = chain(_lasting(subject), check_plugins(subject, plugins))
    had = {(problem.path, problem.message) for problem in _together(fields, rules)}
    for problem in problems:
        if problem is _MORE or (problem.path, problem.message) not in had:
            yield problem


def _ours(job: Any) -> Object:
    """The annotations under our prefix on a Job."""
    annotations = _part(_part(job, "metadata"), "annotations")
    return {key: value for key, value in annotations.items() if key.startswith(OUR_PREFIX)}


def _part(whole: Any, name: str) -> Any:
    part = whole.get(name) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def _rules(subject: Subject, plugins: Registry) -> Iterator[Problem]:
    yield from check_names(subject)
    yield from check_annotations(subject)
    yield from check_tasks(subject)
    yield from check_policies(subject)
    yield from check_plugins(subject, plugins)
    yield from check_volumes(subject)
    yield from check_templates(subject)


def _together(fields: list[Problem], rules: Iterable[Problem]) -> list[Problem]:
    """Each thing once: where a field is wrong already, rules would say it in other words."""
    wrong = {problem.path for problem in fields if not problem.warning}
    others = (problem for problem in rules if problem.path not in wrong)
    problems = [*fields, *_first(others, max(_MOST_ERRORS - len(wrong), 1))]
    return list({(problem.path, problem.message): problem for problem in problems}.values())


def _first(problems: Iterable[Problem], most: int = _MOST_ERRORS) -> Iterator[Problem]:
    """Problems up to so many errors, and that there are more."""
    for problem in problems:
        if not problem.warning and not most:
            yield _MORE
            return
        yield problem
        most -= not problem.warning
