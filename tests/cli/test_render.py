import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from vcjob.api.manifest import parse
from vcjob.cli.render import render

MANIFEST = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
spec:
  plugins: {env: [], svc: []}
  tasks:
  - name: a
    replicas: 2
    template:
      spec:
        containers:
        - name: c
          image: i
          command: [sh, -c, "echo one\\necho two\\n"]
          args: ["1e3", "y", "0o17", "no", "1_0", ".5", "é", "", " x", "0x1f", "a: b"]
"""
PRIORITY = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 5
"""


def run(*arguments: str, stdin: str = MANIFEST) -> Result:
    return CliRunner().invoke(render, [*arguments, "-"], input=stdin, standalone_mode=False)


def shown(*arguments: str, stdin: str = MANIFEST) -> list[str]:
    result = run("-o", "json", *arguments, stdin=stdin)
    assert not result.return_value
    listed = json.loads(result.stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    return [f"{item['kind']}/{item['metadata']['name']}" for item in listed["items"]]


UID = "00000000-0000-0000-0000-000000000001"


def test_every_object_is_shown_in_the_order_in_which_it_is_sent() -> None:
    assert shown("--uid", UID) == [
        "ConfigMap/j-svc",
        "Service/j",
        "NetworkPolicy/j",
        f"PodGroup/j-{UID}",
        "Pod/j-a-0",
        "Pod/j-a-1",
    ]


def test_yaml_says_the_same_as_json() -> None:
    items = json.loads(run("-o", "json").stdout)["items"]
    text = run().stdout
    assert list(yaml.safe_load_all(text)) == items
    assert [document.object for document in parse(text).documents] == items


def test_yaml_is_readable_and_means_the_same_to_every_reader() -> None:
    text = run().stdout
    assert "- |\n      echo one\n      echo two\n" in text
    assert "&id" not in text
    for ambiguous in ("1e3", "y", "0o17"):
        assert f"- '{ambiguous}'\n" in text


def test_the_same_job_gives_the_same_output() -> None:
    assert run().stdout == run().stdout
    other = MANIFEST.replace("{env: [], svc: []}", "{svc: [], env: []}")
    assert run(stdin=other).stdout == run().stdout


def test_the_uid_is_derived_from_namespace_and_name() -> None:
    elsewhere = MANIFEST.replace("name: j\n", "name: j\n  namespace: other\n")
    assert shown()[3] != shown(stdin=elsewhere)[3]


def test_a_name_that_a_server_would_complete_is_completed() -> None:
    first, *_ = shown(stdin=MANIFEST.replace("name: j\n", "generateName: j-\n"))
    assert first.startswith("ConfigMap/j-")
    assert first != "ConfigMap/j--svc"


def test_problems_go_to_standard_error_and_refuse_nothing() -> None:
    wrong = MANIFEST.replace("svc: []", "svc: [--inject-hosts-env=yes]")
    result = run(stdin=wrong)
    assert not result.return_value
    assert result.stderr.count("neither true nor false") == 1
    assert "<stdin>:6:" in result.stderr
    assert "error" not in result.stdout


@pytest.mark.parametrize(
    ("part", "replacement", "message"),
    [
        ("command: [", "env: {} #[", "the Job cannot be shown: the template of task"),
        ("replicas: 2", "replicas: two", "the Job cannot be shown"),
        ("- name: c", "- [", "error"),
        ("kind: Job", "kind: Jop", "Job"),
    ],
)
def test_what_cannot_be_shown_ends_with_exit_code_3_after_the_rest(
    part: str, replacement: str, message: str
) -> None:
    impossible = MANIFEST.replace("name: j\n", "name: k\n").replace(part, replacement)
    result = run(stdin=f"{impossible}\n---\n{MANIFEST}")
    assert result.return_value == 3
    assert message in result.stderr
    assert "j-a-1" in result.stdout


@pytest.mark.parametrize("text", ["", "kind: [", "kind: Pod\napiVersion: v1\nmetadata: {name: p}"])
def test_a_manifest_without_a_job_ends_with_exit_code_3(text: str) -> None:
    result = run(stdin=text)
    assert result.return_value == 3
    assert result.stderr
    assert not result.stdout


def test_priority_classes_of_the_manifest_count_in_the_pod_group() -> None:
    job = yaml.safe_load(MANIFEST)
    low, high = job["spec"]["tasks"][0], json.loads(json.dumps(job["spec"]["tasks"][0]))
    for task, name, cpu in ((low, "low", "1"), (high, "high", "7")):
        task["name"] = name
        task["template"]["spec"]["priorityClassName"] = name
        task["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    job["spec"] |= {"tasks": [low, high], "minAvailable": 1}
    items = json.loads(run("-o", "json", stdin=yaml.safe_dump(job) + PRIORITY).stdout)["items"]
    [group] = [item for item in items if item["kind"] == "PodGroup"]
    assert group["spec"]["minResources"]["cpu"] == "7"


def test_files_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(MANIFEST.replace("name: j\n", f"name: {name}\n"))
    files = [str(tmp_path / name) for name in ("b", "a")]
    result = CliRunner().invoke(render, ["-o", "json", *files], standalone_mode=False)
    first, *_, last = json.loads(result.stdout)["items"]
    assert (first["metadata"]["name"], last["metadata"]["name"]) == ("b-svc", "a-a-1")


def test_p46_the_command_that_ray_replaces_is_told_beside_the_one_that_is_run() -> None:
    manifest = MANIFEST.replace("{env: [], svc: []}", '{ray: ["--head=a", "--headContainer=c"]}')
    result = run("-o", "json", stdin=manifest)
    assert result.return_value == 0
    assert 'the plugin ray replaces the command of container "c"' in result.stderr
    pods = [one for one in json.loads(result.stdout)["items"] if one["kind"] == "Pod"]
    assert pods[0]["spec"]["containers"][0]["command"][2].startswith("ray start --head ")


def test_a_job_whose_plugin_fails_does_not_hide_the_others() -> None:
    headless = MANIFEST.replace("name: j\n", "name: k\n").replace("svc: []", "ray: []")
    result = run("-o", "json", stdin=f"{headless}---\n{MANIFEST}")
    assert result.return_value == 3
    assert 'the plugin ray finds no task called "head"' in result.stderr
    names = [one["metadata"]["name"] for one in json.loads(result.stdout)["items"]]
    assert "j-a-0" in names
    assert "k-a-0" not in names
