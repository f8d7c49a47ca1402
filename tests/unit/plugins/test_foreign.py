"""Plugins of other packages: whatever they do wrong, one sentence names them."""

from collections.abc import Callable
from typing import Any

import pytest

from vcjob.api import kinds
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.core.blueprint import Blueprint
from vcjob.plugins.base import AddToPod, Argument, KeyPairNeed, Plugin, PluginError, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.foreign import guarded
from vcjob.plugins.registry import registry_of

BLAME = 'the plugin "b" of the package bad 1.0'


def job(replicas: int = 2) -> Object:
    container = {"name": "c", "env": [{"name": "A", "value": "1"}]}
    template = {"metadata": {"labels": {"own": "x"}}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": "j", "annotations": {"note": "n"}},
        "spec": {
            "tasks": [{"name": "a", "replicas": replicas, "template": template}],
            "plugins": {"b": []},
        },
    }


def blueprint(obj: Object | None = None, **functions: Any) -> Blueprint:
    plugin = guarded(Plugin(name="b", help="-", **functions), BLAME)
    return Blueprint(Job.of(obj or job()), registry_of([plugin]))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("help", "", "help must be a text"),
        ("help", None, "help must be a text"),
        ("arguments", ["x"], "arguments must be a tuple"),
        ("arguments", ("x",), "arguments must hold Arguments"),
        ("arguments", (Argument("a=b", "", ""),), "'a=b' cannot be the name"),
        ("arguments", (Argument("-a", "", ""),), "'-a' cannot be the name"),
        ("arguments", (Argument("a", 1.5, ""),), "default of --a must be a bool, int or str"),  # type: ignore[arg-type]
        ("arguments", (Argument("a", 1, ""), Argument("a", 2, "")), "the same name"),
        ("arguments", (Argument("a", True, "", port=True),), "its default must be an int"),
        ("requires", "svc", "requires must be a tuple"),
        ("requires", (1,), "requires must hold names"),
        ("kinds", (kinds.POD,), "kinds has Pod, but plugins can make only ConfigMap, Secret"),
        ("kinds", ("Secret",), "kinds has Secret, but plugins can make only"),
        ("pods", None, "pods must be a function"),
    ],
)
def test_what_a_plugin_says_of_itself_is_checked_when_it_is_loaded(
    field: str, value: Any, message: str
) -> None:
    fields: dict[str, Any] = {"help": "-", field: value}
    with pytest.raises(PluginError) as found:
        guarded(Plugin(name="b", **fields), BLAME)
    assert str(found.value).startswith(f"{BLAME} is wrong: ")
    assert message in str(found.value)


def raises(error: BaseException) -> Callable[[Request], Any]:
    def function(_: Request) -> Any:
        raise error

    return function


def gives(value: Any) -> Callable[[Request], Any]:
    return lambda _: value


MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize("function", ["addresses", "key_pairs", "problems", "objects", "pods"])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("x"), "ZeroDivisionError: x"),
        (SystemExit(3), "SystemExit: 3"),
        (PluginError("no such thing"), "no such thing"),
    ],
)
def test_a_function_that_raises_is_a_problem_where_the_plugin_stands(
    function: str, error: BaseException, message: str
) -> None:
    [problem] = blueprint(**{function: raises(error)}).problems
    assert problem == Problem(f"{BLAME} failed: {message}", ("spec", "plugins", "b"))


@pytest.mark.parametrize(
    ("function", "value", "message"),
    [
        ("addresses", [1], "addresses gave [1] in place of a mapping"),
        ("addresses", {"a": "x"}, "addresses must map (task, index) to a text"),
        ("key_pairs", 3, "key_pairs gave 3 in place of a list"),
        ("key_pairs", ["x"], "key_pairs gave 'x'"),
        ("key_pairs", [KeyPairNeed("n", "dsa", "s", "a", "b")], "the algorithm 'dsa'"),
        ("problems", "wrong", "problems gave 'wrong' in place of a list"),
        ("problems", ["wrong"], "problems gave 'wrong' in place of a Problem"),
        ("problems", [Problem(3)], "in place of a Problem"),  # type: ignore[arg-type]
        ("objects", None, "objects gave None in place of a list"),
        ("objects", [3], "objects gave 3 in place of an object"),
        ("objects", [{}], "the kind None None, which kinds does not name"),
        ("objects", [{"apiVersion": "v1", "kind": "Secret"}], "the kind v1 Secret, which kinds"),
        ("objects", [MAP], "a ConfigMap without metadata.name"),
        ("objects", [{**MAP, "metadata": {"name": "m", "labels": {"a": 1}}}], "must hold texts"),
        ("objects", [{**MAP, "metadata": {"name": "m"}, "data": {1, 2}.__iter__}], "as JSON"),
        ("pods", "add", "pods gave 'add' in place of a function"),
    ],
)
def test_what_a_function_gives_is_looked_at_before_it_is_used(
    function: str, value: Any, message: str
) -> None:
    made = blueprint(kinds=(kinds.CONFIG_MAP,), **{function: gives(value)})
    [problem] = made.problems
    assert problem.message.startswith(f"{BLAME} failed: ")
    assert message in problem.message
    assert not made.supporting_objects()


def adding(change: Callable[[PodDraft], object]) -> Callable[[Request], AddToPod]:
    def add(pod: PodDraft) -> None:
        change(pod)

    return lambda _: add


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pod: 1 / 0, "ZeroDivisionError"),
        (lambda pod: pod.spec.update(x=object()), "the pod's spec cannot be written as JSON"),
        (lambda pod: pod.containers[0].body.update(x={1: {2}.__iter__}), "written as JSON"),
        (lambda pod: pod.labels.update(a=1), "labels of pod j-a-0 must map texts to texts"),
        (lambda pod: pod.labels.clear(), "it changed volcano.sh/job-name"),
        (lambda pod: pod.annotations.pop("volcano.sh/task-index"), "it changed volcano.sh/task-i"),
        (lambda pod: setattr(pod, "containers", [3]), "AttributeError"),
    ],
)
def test_a_pod_that_cannot_be_is_not_made(change: Any, message: str) -> None:
    with pytest.raises(PluginError) as found:
        blueprint(pods=adding(change)).pod("a", 0)
    assert str(found.value).startswith(f"{BLAME} failed: ")
    assert message in str(found.value)


def test_additions_reach_the_pod() -> None:
    def change(pod: PodDraft) -> None:
        pod.containers[0].add_env([{"name": "B", "value": str(pod.index)}])
        pod.labels["more"] = "y"
        pod.annotations["n"] = "z"
        pod.set_default("hostname", "h")

    pod = blueprint(pods=adding(change)).pod("a", 1)
    [container] = pod["spec"]["containers"]
    assert [entry["value"] for entry in container["env"]] == ["1", "1"]
    assert pod["metadata"]["labels"]["more"] == "y"
    assert pod["metadata"]["annotations"]["n"] == "z"
    assert pod["spec"]["hostname"] == "h"


def test_what_a_plugin_changes_in_place_reaches_nobody_else() -> None:
    """It takes the parts that all pods share for its own."""

    def change(pod: PodDraft) -> None:
        pod.spec["containers"][0]["env"].append({"name": "B"})
        pod.containers[0].body["env"].append({"name": "C"})
        pod.spec["containers"][0]["name"] = "other"

    def spoil(request: Request) -> AddToPod:
        request.job.spec.tasks[0].template["spec"]["containers"].clear()
        request.job.metadata.annotations.clear()  # type: ignore[attr-defined]
        request.arguments.clear()
        return change

    written, before = job(), job()
    made = blueprint(written, pods=spoil, problems=lambda request: spoil(request) and ())
    pods = [made.pod("a", index) for index in (0, 1)]
    assert written == before
    assert made.problems == ()
    for pod in pods:
        [container] = pod["spec"]["containers"]
        assert [entry["name"] for entry in container["env"]] == ["A", "B", "C"]


def test_two_objects_of_one_name_are_a_problem() -> None:
    obj = {**MAP, "metadata": {"name": "m"}}
    made = blueprint(kinds=(kinds.CONFIG_MAP,), objects=gives([obj, obj]))
    [problem] = made.problems
    assert problem.message == "the plugin b makes ConfigMap m, which is made already"
