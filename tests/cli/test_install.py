"""``vcjob manifests``: what it prints, that it is always the same, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import Ended, run


def objects(ended: Ended) -> list[dict[str, Any]]:
    assert ended.code == 0, ended
    return [one for one in yaml.safe_load_all(ended.out) if one]


def kinds(ended: Ended) -> set[str]:
    return {one["kind"] for one in objects(ended)}


def test_everything_is_printed_and_the_same_each_time(tmp_path: Path) -> None:
    first, second = run(tmp_path, "manifests"), run(tmp_path, "manifests")
    assert first.raw == second.raw
    assert kinds(first) == {
        *("CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole"),
        *("ClusterRoleBinding", "Role", "RoleBinding", "Deployment", "PodDisruptionBudget"),
        *("Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    }


def test_json_is_one_list_of_the_same_objects(tmp_path: Path) -> None:
    listed = json.loads(run(tmp_path, "manifests", "-o", "json").out)
    assert listed["kind"] == "List"
    assert listed["items"] == objects(run(tmp_path, "manifests"))


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("--only", "crds"), {"CustomResourceDefinition"}),
        (("--only", "operator"), {"Deployment", "PodDisruptionBudget"}),
        (("--only", "queues"), {"Queue"}),
        (("--only", "webhook", "--namespaces", "a"), set()),
    ],
)
def test_parts_can_be_chosen(tmp_path: Path, arguments: tuple[str, ...], printed: set[str]) -> None:
    assert kinds(run(tmp_path, "manifests", *arguments)) == printed


def test_beside_volcano_nothing_of_volcanos_is_printed(tmp_path: Path) -> None:
    ended = run(tmp_path, "manifests", "--beside-volcano")
    assert kinds(ended).isdisjoint({"CustomResourceDefinition", "Queue"})
    assert "Volcano" not in ended.err


def test_the_right_to_see_volcano_is_where_volcano_is_said_to_be(tmp_path: Path) -> None:
    ended = run(tmp_path, "manifests", "--beside-volcano", "--volcano-namespace", "batch")
    roles = [one["metadata"]["namespace"] for one in objects(ended) if one["kind"] == "Role"]
    assert "batch" in roles
    assert "volcano-system" not in roles
    assert "--volcano-namespace=batch" in ended.out


def test_what_falls_away_is_said_before_the_objects_and_on_standard_error(tmp_path: Path) -> None:
    ended = run(tmp_path, "manifests", "--namespaces", "b,a", "--no-crds")
    comments = [line[2:] for line in ended.out.split("---\n")[0].splitlines() if line != "#"]
    assert " ".join(comments) == ended.err.removeprefix("vcjob: ").strip()
    assert "There is no ClusterRole" in ended.err
    assert {one["kind"] for one in objects(ended) if "Role" in one["kind"]} == {
        "Role",
        "RoleBinding",
    }


def test_options_reach_the_deployments(tmp_path: Path) -> None:
    ended = run(
        tmp_path, "manifests", "--image", "here/vcjob:1", "--replicas", "3", "--namespace", "mine",
        "--allow-annotation", "vcjob.dev/service-labels", "--only", "operator",
    )  # fmt: skip
    deployment, _ = objects(ended)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["metadata"]["namespace"] == "mine"
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "here/vcjob:1"
    assert "--allow-annotation=vcjob.dev/service-labels" in container["args"]
    assert "vcjob.dev/service-labels" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--allow-annotation", "vcjob.dev/suspend"), "vcjob.dev/network-policy-sources"),
        (("--namespaces", "Team_A"), "Team_A"),
        (("--namespace", "a,b"), "must be one name"),
        (("--replicas", "0"), "--replicas"),
        (("--image", "a b"), '"a b" is no image'),
        (("--image", ""), '"" is no image'),
        (("--priority-class", "B B"), 'the name "B B" must'),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = run(tmp_path, "manifests", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert said in ended.err


def test_a_context_that_there_is_not_prints_nothing(tmp_path: Path) -> None:
    ended = run(tmp_path, "manifests", "--context", "nowhere", "--kubeconfig", tmp_path / "none")
    assert ended.code != 0
    assert ended.out == ""
    assert "Traceback" not in ended.err
