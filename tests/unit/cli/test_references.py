from pathlib import Path

import pytest
import yaml

from vcjob.cli.manifests import load
from vcjob.cli.references import missing_references
from vcjob.plugins.registry import installed_plugins

QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "mine"},
    "spec": {"weight": 1},
}
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1,
}


@pytest.mark.parametrize(
    ("spec", "others", "missing"),
    [
        ({}, [], None),
        ({"queue": "default"}, [], None),
        ({"queue": "mine"}, [QUEUE], None),
        ({"queue": "mine"}, [CLASS], "queue"),
        ({"queue": "root"}, [], "queue"),
        ({"priorityClassName": "high"}, [CLASS], None),
        ({"priorityClassName": "system-node-critical"}, [], None),
        ({"priorityClassName": "high"}, [QUEUE], "priorityClassName"),
    ],
)
def test_a_run_is_refused_whose_job_names_what_nobody_can_make_any_more(
    tmp_path: Path, spec: dict[str, str], others: list[object], missing: str | None
) -> None:
    container = {"name": "main", "image": "x", "command": ["true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [{"name": "worker", "template": template}], **spec},
    }
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump_all([job, *others]))
    loaded = load([str(manifest)])
    assert loaded.errors == []
    problems = list(missing_references(loaded, installed_plugins(third_party=False)))
    assert [problem.path for problem in problems] == ([("spec", missing)] if missing else [])
    assert not any(problem.warning for problem in problems)
