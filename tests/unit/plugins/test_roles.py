"""A default that no task has, where the user probably meant one of the tasks."""

import pytest

from vcjob.api.types import Job
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)


def told(plugin: str, *tasks: str) -> list[str]:
    template = {"spec": {"containers": [{"name": "head"}, {"name": "worker"}]}}
    listed = [{"name": name, "replicas": 1, "template": template} for name in tasks]
    plugins: dict[str, list[str]] = {"svc": [], plugin: []}
    job = {"metadata": {"name": "j"}, "spec": {"tasks": listed, "plugins": plugins}}
    return [one.message for one in Blueprint(Job.of(job), REGISTRY).problems]


@pytest.mark.parametrize(
    ("plugin", "tasks", "alike"),
    [
        ("tensorflow", ("ps", "workers"), "workers"),
        ("tensorflow", ("ps", "worker", "evaluation"), "evaluation"),
        ("ray", ("head", "wroker"), "wroker"),
        ("hcclrank", ("master", "workers"), "workers"),
        ("tensorflow", ("ps", "worker", "tensorboard"), ""),
        ("tensorflow", ("chief", "worker"), ""),
        ("ray", ("head", "submitter"), ""),
        ("ray", ("head",), ""),
        ("hcclrank", ("worker",), ""),
    ],
)
def test_a_name_much_alike_is_probably_the_role(
    plugin: str, tasks: tuple[str, ...], alike: str
) -> None:
    found = told(plugin, *tasks)
    assert len(found) == (1 if alike else 0), found
    assert all(f'so that task "{alike}" plays no role' in message for message in found)
