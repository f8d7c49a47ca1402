from collections.abc import Iterator
from itertools import islice

from vcjob.api.types import Object
from vcjob.core.render import blueprint_to_render, rendered_objects
from vcjob.plugins.base import Plugin, Request
from vcjob.plugins.registry import registry_of

JOB = {
    "metadata": {"name": "j", "uid": "stored"},
    "spec": {"plugins": {"lock": []}, "tasks": [{"name": "a", "replicas": 10**9}]},
}


def _secret(_: Request) -> Iterator[Object]:
    yield {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "j-lock"},
        "data": {"key": "aHVzaA=="},
    }


REGISTRY = registry_of([Plugin(name="lock", help="-", objects=_secret)])


def test_values_of_secrets_show_only_when_that_is_asked_for() -> None:
    blueprint = blueprint_to_render(JOB, REGISTRY)
    hidden = next(rendered_objects(blueprint))
    assert hidden["data"] == {"key": "<hidden>"}
    shown = next(rendered_objects(blueprint, show_secrets=True))
    assert shown["data"] == {"key": "aHVzaA=="}


def test_pods_are_made_one_by_one() -> None:
    made = list(islice(rendered_objects(blueprint_to_render(JOB, REGISTRY)), 4))
    assert [obj["kind"] for obj in made] == ["Secret", "PodGroup", "Pod", "Pod"]


def test_the_uid_is_the_one_given_else_the_jobs_own_else_derived() -> None:
    def uid(job: Object, given: str = "") -> str:
        return blueprint_to_render(job, REGISTRY, given).job.metadata.uid

    new = {**JOB, "metadata": {"name": "j"}}
    other = {**JOB, "metadata": {"name": "j", "namespace": "n"}}
    assert uid(JOB) == "stored"
    assert uid(JOB, "given") == "given"
    assert uid(new) == uid(new) != uid(other)
