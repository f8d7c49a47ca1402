from pathlib import Path
from typing import Any

import pytest
from field_paths import pod_fields

from vcjob.api.types import Object
from vcjob.local.agent.field_rules import GROUPS, Verdict
from vcjob.local.agent.fields import as_markdown, rule_for, unsupported
from vcjob.local.node.identity import IdMaps, IdRange

_ALL = IdMaps((IdRange(0, 0, 65536),), (IdRange(0, 0, 65536),))
_ONE = IdMaps((IdRange(0, 1000, 1),), (IdRange(0, 1000, 1),))
_DOCUMENT = Path(__file__).parents[4] / "docs" / "local.md"


def test_no_field_of_the_schema_is_without_a_row() -> None:
    assert [field for field in pod_fields() if rule_for(field) is None] == []


def test_every_row_names_fields_of_the_schema_and_no_field_stands_twice() -> None:
    known = set(pod_fields())
    named = [field for rules in GROUPS.values() for rule in rules for field in rule.fields]
    spelled = [f"spec.containers[]{f[1:]}" if f.startswith("C.") else f for f in named]
    assert [field for field in spelled if field not in known] == []
    assert len(set(named)) == len(named)


@pytest.mark.parametrize(
    "field", ["spec.new", "spec.containers[].new", "spec.volumes[].new", "metadata.new",
              "spec.securityContext.new", "spec.containers[].env[].valueFrom.new"]
)  # fmt: skip
def test_a_field_that_kubernetes_adds_one_day_is_not_covered_by_chance(field: str) -> None:
    assert rule_for(field) is None


def test_the_document_shows_the_table() -> None:
    text = _DOCUMENT.read_text()
    assert text.endswith(f"-->\n{as_markdown()}")


def _pod(spec: Object | None = None, **container: Any) -> Object:
    return {"spec": {"containers": [{"name": "main", **container}], **(spec or {})}}


@pytest.mark.parametrize(
    "pod",
    [
        _pod(image="x", env=[{"name": "A", "value": "1"}], resources={"limits": {"cpu": "1"}}),
        _pod({"hostNetwork": False, "tolerations": [{"operator": "Exists"}]}),
        _pod({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]}),
        _pod({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        _pod(ports=[{"containerPort": 80, "hostPort": 0}], volumeDevices=[], tty=False),
        _pod(securityContext={"allowPrivilegeEscalation": False}),
        {},
    ],
)
def test_what_is_honoured_or_asks_for_nothing_draws_nothing(pod: Object) -> None:
    assert unsupported(pod, _ALL) == []


@pytest.mark.parametrize(
    ("pod", "field", "verdict"),
    [
        (_pod({"nodeSelector": {"a": "b"}}), "nodeSelector", Verdict.WARNED),
        (_pod({"runtimeClassName": "gvisor"}), "runtimeClassName", Verdict.WARNED),
        (_pod(tty=True), "tty", Verdict.WARNED),
        (_pod(ports=[{"hostPort": 80}]), "hostPort", Verdict.WARNED),
        (_pod(securityContext={"seccompProfile": {"type": "Localhost"}}), "seccompProfile",
         Verdict.WARNED),
        (_pod({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]}), "sizeLimit",
         Verdict.WARNED),
        (_pod({"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}]}), "nfs",
         Verdict.REFUSED),
        (_pod(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]), "volumeDevices",
         Verdict.REFUSED),
        ({"spec": {"initContainers": [{"name": "i", "tty": True}]}}, "tty", Verdict.WARNED),
    ],
)  # fmt: skip
def test_what_is_not_as_asked_is_told_with_its_place(
    pod: Object, field: str, verdict: Verdict
) -> None:
    (problem,) = unsupported(pod, _ALL, ("spec", "tasks", 0, "template"))
    assert problem.message.startswith(f"{field} is ")
    assert problem.warning == (verdict is Verdict.WARNED)
    assert problem.path[:4] == ("spec", "tasks", 0, "template")
    assert field in problem.path


def test_a_field_is_told_once_however_many_containers_have_it() -> None:
    containers = [{"name": name, "tty": True} for name in ("a", "b")]
    assert len(unsupported({"spec": {"containers": containers}}, _ALL)) == 1


@pytest.mark.parametrize(
    ("pod", "maps"),
    [
        (_pod({"hostNetwork": True}), _ALL),
        (_pod(securityContext={"privileged": True}), _ALL),
        (_pod(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}), _ALL),
        (_pod(securityContext={"runAsUser": 1000}), _ONE),
    ],
)
def test_what_the_sandbox_does_not_grant_is_told_once(pod: Object, maps: IdMaps) -> None:
    (problem,) = unsupported(pod, maps)
    assert problem.warning
    assert "not granted" in problem.message
