from pathlib import Path
from typing import Any

import pytest
import yaml

from vcjob.cli.manifests import Loaded, load
from vcjob.cli.references import left_claims, missing_references
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


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {},
}
VOLUME: dict[str, Any] = {"mountPath": "/data", "volumeClaimName": "data"}


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
        ({"volumes": [VOLUME]}, [CLAIM], None),
        ({"volumes": [VOLUME]}, [], "volumes"),
    ],
)
def test_a_run_is_refused_whose_job_names_what_nobody_can_make_any_more(
    tmp_path: Path, spec: dict[str, Any], others: list[object], missing: str | None
) -> None:
    loaded = loaded_with(tmp_path, spec, others)
    plugins = installed_plugins(third_party=False)
    problems = list(missing_references(loaded, plugins, tmp_path))
    assert [problem.path[1] for problem in problems] == ([missing] if missing else [])
    assert not any(problem.warning for problem in problems)


@pytest.mark.parametrize("others", [[], [CLAIM]])
def test_a_claim_that_an_earlier_run_has_left_is_there_once(
    tmp_path: Path, others: list[object]
) -> None:
    (tmp_path / "default" / "data").mkdir(parents=True)
    loaded = loaded_with(tmp_path, {"volumes": [VOLUME, VOLUME | {"mountPath": "/more"}]}, others)
    assert not list(missing_references(loaded, installed_plugins(third_party=False), tmp_path))
    assert left_claims(loaded, tmp_path) == ([] if others else [CLAIM])


def loaded_with(tmp_path: Path, spec: dict[str, Any], others: list[object]) -> Loaded:
    """A Job whose spec says this, and other objects."""
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
    return loaded
