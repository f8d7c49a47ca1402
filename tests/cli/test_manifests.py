from pathlib import Path

import click
import pytest

from vcjob.api.kinds import CONFIG_MAP
from vcjob.cli.manifests import load

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j}
spec:
  tasks:
  - replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers: [{name: c, image: i, odd: 1}]
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "a.yaml").write_text(f"{JOB}---\n{CONFIG}")
    (tmp_path / "b.yaml").write_text(JOB)
    return str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")


def test_jobs_are_given_as_written_and_with_defaults(files: tuple[str, str]) -> None:
    loaded = load(files[:1])
    (job,) = loaded.jobs
    assert "queue" not in job.written["spec"]
    assert job.defaulted["spec"]["queue"] == "default"
    assert job.defaulted["spec"]["tasks"][0]["name"] == "default0"
    assert job.defaulted["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["odd"] == 1
    assert not job.refused
    (problem,) = loaded.problems
    assert (problem.job, problem.line, problem.warning) == ("j", 10, True)
    assert loaded.errors == []


def test_other_objects_are_passed_on_with_their_kind(files: tuple[str, str]) -> None:
    (other,) = load(files[:1]).others
    assert other.kind == CONFIG_MAP
    assert other.object["data"] == {"a": "b"}


def test_one_name_in_two_files_is_refused_only_where_both_are_to_exist(
    files: tuple[str, str],
) -> None:
    (problem,) = load(files).errors
    assert f"first in {files[0]}:3" in problem.message
    assert load(files, together=False).errors == []


def test_the_same_name_in_another_namespace_is_another_object(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{JOB}---\n{JOB.replace('name: j', 'name: j, namespace: other')}")
    assert load([str(file)]).errors == []


def test_a_job_may_leave_its_name_to_be_generated(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(JOB.replace("name: j", "generateName: j-"))
    loaded = load([str(file)])
    assert loaded.errors == []
    assert "name" not in loaded.jobs[0].defaulted["metadata"]


def test_files_without_a_job_draw_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(CONFIG)
    (problem,) = load([str(file)]).problems
    assert problem.warning
    assert "no Job" in problem.message


def test_an_endless_file_is_not_read_to_its_end() -> None:
    (problem,) = load(["/dev/zero"]).problems
    assert "more than 4 MiB" in problem.message


def test_a_refused_job_is_known_as_such(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(JOB.replace("replicas: 2", "replicas: -2"))
    assert load([str(file)]).jobs[0].refused


def test_a_missing_file_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="cannot read"):
        load([str(tmp_path / "none")])
