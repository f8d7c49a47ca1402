from typing import Any

import pytest

from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)
RANK = "hccl/rankIndex"


def blueprint(template: Object | None = None, **plugins: Any) -> Blueprint:
    template = template or {"spec": {"containers": [{"name": "c"}]}}
    tasks = [
        {"name": name, "replicas": replicas, "template": template}
        for name, replicas in (("master", 2), ("worker", 2), ("other", 1))
    ]
    job = {"metadata": {"name": "h"}, "spec": {"tasks": tasks, "plugins": plugins}}
    return Blueprint(Job.of(job), REGISTRY)


def ranks(made: Blueprint) -> list[str | None]:
    return [pod["metadata"]["annotations"].get(RANK) for pod in made.pods()]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (blueprint(hcclrank=[]), ["0", "1", "2", "3", None]),
        (blueprint(hcclrank=["--master=other"]), [None, None, "1", "2", "0"]),
        (blueprint({"metadata": {"annotations": {RANK: "7"}}}, hcclrank=[]), ["7"] * 5),
        (
            blueprint({"spec": {"containers": [{"env": [{"name": "RANK", "value": "9"}]}]}},
                      hcclrank=[]),
            ["9"] * 5,
        ),
        (blueprint(hcclrank=[], pytorch=[], svc=[]), ["0", "0", "1", "2", None]),
    ],
)  # fmt: skip
def test_ranks_follow_what_the_user_wrote_then_pytorch_then_the_index(
    made: Blueprint, expected: list[str | None]
) -> None:
    assert ranks(made) == expected


def test_it_leaves_no_mark_and_no_objects() -> None:
    made = blueprint(hcclrank=[])
    assert not made.marks
    assert not made.supporting_objects()
