import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vcjob.cli.validate import validate

RIGHT = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
spec:
  tasks:
  - name: a
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: c
          image: i
"""
WRONG = RIGHT.replace("replicas: 1", "replica: 1").replace("image: i", "image: 3")
WARNED = RIGHT.replace("image: i", "imagee: i\n          image: i")


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(validate, arguments, input=stdin, standalone_mode=False)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "job.yaml"


def test_a_right_manifest_is_valid(manifest: Path) -> None:
    manifest.write_text(RIGHT)
    result = run(str(manifest))
    assert (result.return_value, result.output) == (0, "1 Job: valid\n")


def test_all_problems_are_told_with_place_path_and_hint(manifest: Path) -> None:
    manifest.write_text(WRONG)
    result = run(str(manifest))
    assert result.return_value == 3
    assert result.output == (
        f'{manifest}:8:5: error: unknown field "replica" in tasks[0]\n'
        "    at spec.tasks[0].replica\n"
        '    hint: did you mean "replicas"?\n'
        f"{manifest}:14:11: error: image must be a text, but is the number 3\n"
        "    at spec.tasks[0].template.spec.containers[0].image\n"
        "    hint: put it in quotes\n"
        "1 Job: refused (2 errors)\n"
    )


def test_warnings_refuse_only_with_strict(manifest: Path) -> None:
    manifest.write_text(WARNED)
    assert run(str(manifest)).return_value == 0
    result = run("--strict", str(manifest))
    assert result.return_value == 3
    assert 'did you mean "image"?' in result.output


def test_of_several_jobs_it_is_said_which_are_wrong(manifest: Path, tmp_path: Path) -> None:
    manifest.write_text(WRONG)
    right, warned = tmp_path / "right.yaml", tmp_path / "warned.yaml"
    right.write_text(RIGHT)
    warned.write_text(WARNED)
    files = [str(right), str(manifest), str(warned)]
    last = run(*files).output.splitlines()[-1]
    assert last == f"3 Jobs: refused (2 errors, 1 warning); 1 of the Jobs is wrong: j in {manifest}"
    last = run("--strict", *files).output.splitlines()[-1]
    assert last.endswith(f"2 of the Jobs are wrong: j in {manifest}, j in {warned}")


def test_json_for_programs(manifest: Path) -> None:
    manifest.write_text(WRONG)
    result = run("-o", "json", str(manifest))
    report = json.loads(result.output)
    assert result.return_value == 3
    assert (report["valid"], report["jobs"], len(report["problems"])) == (False, 1, 2)
    assert report["problems"][0] == {
        "severity": "error",
        "message": 'unknown field "replica" in tasks[0]',
        "hint": 'did you mean "replicas"?',
        "file": str(manifest),
        "document": 0,
        "line": 8,
        "column": 5,
        "path": "spec.tasks[0].replica",
        "job": "j",
    }


def test_standard_input_and_json_manifests() -> None:
    stdin = json.dumps(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
    )
    result = run("-", stdin=stdin.encode())
    assert result.return_value == 3
    assert '<stdin>:1:1: error: the object lacks the field "spec"' in result.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "holds no object"),
        (b"\x7fELF\x00", "looks like a binary file"),
        (b"# " + b"x" * 5_000_000, "more than 4 MiB"),
        (b"hello", "this is a text"),
        (b"a: [", "not YAML"),
        (b"kind: Job", 'lacks the field "apiVersion"'),
        (b"apiVersion: batch/v1\nkind: Job", "apiVersion: batch.volcano.sh/v1alpha1"),
        (b"apiVersion: apps/v1\nkind: Deployment", "no use for"),
        (b"apiVersion: v1\nkind: Pod", "write a Job"),
        (b"apiVersion: v1\nkind: ConfigMapp", "did you mean ConfigMap"),
        (b"apiVersion: 1\nkind: Job", "the number 1"),
        (b"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: '%'}", "not base64"),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {'a/b': x}", "the key"),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "lacks the name"),
    ],
)
def test_what_is_no_manifest_is_refused_with_one_clear_sentence(text: bytes, says: str) -> None:
    result = run("-", stdin=text)
    assert result.return_value == 3
    assert says in result.output
    assert "Traceback" not in result.output


def test_other_objects_may_come_along(manifest: Path) -> None:
    others = "".join(
        f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{rest}"
        for version, kind, rest in (
            ("v1", "ConfigMap", "data: {a.txt: b}\n"),
            ("v1", "Secret", "stringData: {a: b}\n"),
            ("v1", "Service", "spec: {anything: 1}\n"),
            ("scheduling.volcano.sh/v1beta1", "Queue", "spec: {weight: 1}\n"),
            ("networking.k8s.io/v1", "NetworkPolicy", "spec: {}\n"),
            ("scheduling.k8s.io/v1", "PriorityClass", "value: 1\n"),
            ("v1", "PersistentVolumeClaim", "spec: {accessModes: [ReadWriteOnce]}\n"),
        )
    )
    manifest.write_text(RIGHT + others)
    assert run(str(manifest)).output == "1 Job: valid\n"


def test_a_name_given_twice_in_a_file_is_refused(manifest: Path) -> None:
    manifest.write_text(f"{RIGHT}---\n{RIGHT}")
    result = run(str(manifest))
    assert result.return_value == 3
    assert f":19:3: error: Job j is given twice; first in {manifest}:4" in result.output


def test_control_characters_of_a_manifest_do_not_reach_the_terminal(manifest: Path) -> None:
    manifest.write_text(RIGHT.replace("name: a", 'name: a\n    "x\\x1b]0;evil\\a\\u202e": 1'))
    result = run(str(manifest))
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert r'unknown field "x\x1b]0;evil\x07\u202e"' in result.output


def test_missing_files_and_directories_are_wrong_usage(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "is a directory")):
        result = run(str(path))
        assert result.exception is not None
        assert getattr(result.exception, "exit_code", None) == 2
        assert says in str(result.exception)
