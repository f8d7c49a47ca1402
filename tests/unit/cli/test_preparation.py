from pathlib import Path

import pytest
import yaml

from vcjob.cli.manifests import Loaded, load
from vcjob.cli.preparation import (
    apply_scalings,
    hidden_host_lists,
    more_pods_than_addresses,
    refused_host_paths,
    texts_no_program_can_be_given,
)
from vcjob.local.network.addresses import MOST_PODS
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.volumes.host_paths import Allowed


def loaded(directory: Path, host_path: dict[str, str], plugins: dict[str, list[str]]) -> Loaded:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "plugins": plugins,
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 1,
                    "template": {
                        "spec": {
                            "volumes": [{"name": "data", "hostPath": host_path}],
                            "containers": [{"name": "main", "image": "x", "command": ["true"]}],
                        }
                    },
                }
            ],
        },
    }
    manifest = directory / "job.yaml"
    manifest.write_text(yaml.safe_dump(job))
    return load([str(manifest)])


@pytest.mark.parametrize(
    ("path", "type_", "said"),
    [
        ("/elsewhere", "", "--allow-host-path /elsewhere"),
        ("allowed/../..", "", "'..'"),
        ("allowed/missing", "", "does not exist"),
        ("allowed", "File", "is not a file"),
        ("allowed", "CharDevice", "devices"),
        ("allowed", "Directory", ""),
        ("allowed/new", "DirectoryOrCreate", ""),
    ],
)
def test_a_host_path_that_pods_would_not_get_is_told_before_any_starts(
    tmp_path: Path, path: str, type_: str, said: str
) -> None:
    (tmp_path / "allowed").mkdir()
    where = path if path.startswith("/") else f"{tmp_path}/{path}"
    jobs = loaded(tmp_path, {"path": where, "type": type_}, {}).jobs
    problems = list(refused_host_paths(jobs, [Allowed(str(tmp_path / "allowed"))]))
    if said:
        (problem,) = problems
        assert said in problem.message
        assert problem.path[-1] == "hostPath"
        assert not problem.warning
    else:
        assert problems == []
    assert not (tmp_path / "allowed" / "new").exists()


@pytest.mark.parametrize(
    ("target", "plugins", "warns"),
    [
        ("/etc/volcano", {"svc": []}, True),
        ("/etc/volcano/", {"svc": []}, True),
        ("/etc/volcano", {"env": []}, False),
        ("/data", {"svc": []}, False),
    ],
)
def test_showing_something_in_place_of_the_host_lists_draws_a_warning(
    tmp_path: Path, target: str, plugins: dict[str, list[str]], warns: bool
) -> None:
    jobs = loaded(tmp_path, {"path": "/x"}, plugins).jobs
    problems = list(hidden_host_lists(jobs, [BindMount(str(tmp_path), target)]))
    assert [problem.warning for problem in problems] == [True] * warns


JOB_OF_TWO_TASKS = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j}
spec:
  tasks:
  - name: a
    replicas: REPLICAS
    template: &template
      spec:
        initContainers:
        - {name: i, image: x, command: ["true"]}
        containers:
        - {name: c, image: x, command: ["true"], args: [a], env: [{name: V, value: b}]}
  - {name: b, replicas: 1, template: *template}
"""


@pytest.mark.parametrize("replicas", [MOST_PODS - 1, MOST_PODS, 2**31 - 1])
def test_more_pods_than_this_machine_has_addresses_for_are_refused_before_any_is_made(
    tmp_path: Path, replicas: int
) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(JOB_OF_TWO_TASKS.replace("REPLICAS", str(replicas)))
    problems = list(more_pods_than_addresses(load([str(manifest)]).jobs))
    if replicas < MOST_PODS:
        assert problems == []
    else:
        (problem,) = problems
        assert str(MOST_PODS) in problem.message
        assert problem.path[2:] == (int(replicas == MOST_PODS), "replicas")


@pytest.mark.parametrize(
    ("text", "with_nul", "path"),
    [
        ('["true"]}', '["t\\0"]}', ("initContainers", 0, "command", 0)),
        ("args: [a]", 'args: ["\\0"]', ("containers", 0, "args", 0)),
        ("value: b", 'value: "\\0"', ("containers", 0, "env", 0, "value")),
    ],
)
def test_a_text_that_no_program_can_be_given_is_refused_where_it_stands(
    tmp_path: Path, text: str, with_nul: str, path: tuple[str | int, ...]
) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(JOB_OF_TWO_TASKS.replace("REPLICAS", "1").replace(text, with_nul, 1))
    problems = list(texts_no_program_can_be_given(load([str(manifest)]).jobs))
    assert {problem.path[-len(path) :] for problem in problems} == {path}
    assert not any(problem.warning for problem in problems)


def written(directory: Path, name: str, **task: object) -> str:
    """A file with a Job of one task, worker."""
    container = {"name": "main", "image": "x", "command": ["true"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "worker", "template": template, **task}]},
    }
    manifest = directory / f"{name}.yaml"
    manifest.write_text(yaml.safe_dump(job))
    return str(manifest)


def test_a_scaled_job_is_checked_as_it_is_then(tmp_path: Path) -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2}
    whole = written(tmp_path, "whole", replicas=4, partitionPolicy=parts)
    broken = written(tmp_path, "broken", replicas=1, minAvailable=2)
    told = [
        (problem.file, problem.message)
        for problem in apply_scalings(load([broken, whole]), ["worker=2"]).loaded.problems
    ]
    assert told == [(whole, 'task "worker" has replicas 2, but 2 partitions of 2 pods make 4')]


def test_what_scaling_changes_is_said_with_the_job_where_there_are_several(tmp_path: Path) -> None:
    files = [written(tmp_path, "a", replicas=3), written(tmp_path, "b", replicas=1)]
    scaled = apply_scalings(load(files), ["worker=2", "worker=1"])
    assert scaled.changes == [
        "--scale: of worker=2, worker=1 the last one counts",
        'a: task "worker" has 1 instead of 3 replicas',
    ]
    assert [job.defaulted["spec"]["tasks"][0]["replicas"] for job in scaled.loaded.jobs] == [1, 1]
