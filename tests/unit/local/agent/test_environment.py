import base64
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.agent.environment import (
    RuntimeDefaults,
    container_environment,
    expanded_command,
)
from vcjob.local.variables import expanded, unknown_variables
from vcjob.local.volumes.objects import MissingReference

_POD: Object = {
    "metadata": {
        "name": "job-worker-0",
        "namespace": "ns",
        "uid": "u1",
        "labels": {"role": "worker"},
        "annotations": {"a.io/b": "c"},
    },
    "spec": {
        "nodeName": "this-machine",
        "containers": [
            {
                "name": "other",
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"},
                              "requests": {"cpu": "500m"}},
            }
        ],
    },
    "status": {
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.0.0.2",
        "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
    },
}  # fmt: skip
_OBJECTS: Mapping[tuple[str, str], Object] = {
    ("ConfigMap", "c"): {"data": {"key": "value", "$(X)": "y"}, "binaryData": {"raw": "AAE="}},
    ("Secret", "s"): {"data": {"password": base64.b64encode(b"p\xff").decode()}},
    ("Secret", "bad"): {"metadata": {"name": "bad"}, "data": {"password": "hunter2!"}},
}
_DEFAULTS = RuntimeDefaults("host", "/opt/venv/bin/python")


def _find(kind: Kind, name: str) -> Object | None:
    return _OBJECTS.get((kind.kind, name))


def _environment(**container: Any) -> Mapping[str, str]:
    environment = container_environment(
        _POD, {"name": "main", **container}, _find, _DEFAULTS, {"cpu": "8", "memory": "16Gi"}
    )
    assert environment.skipped == ()
    return environment.variables


def _value(source: Object) -> str | None:
    return _environment(env=[{"name": "V", "valueFrom": source}]).get("V")


def test_a_container_that_asks_for_nothing_has_what_a_runtime_sets() -> None:
    assert _environment() == {
        "HOSTNAME": "host",
        "HOME": "/root",
        "PATH": "/.vcjob/bin:/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
        ":/sbin:/bin",
    }


def test_a_path_of_the_manifest_comes_after_the_users_python() -> None:
    path = _environment(env=[{"name": "PATH", "value": "/a:/b"}])["PATH"]
    assert path == "/.vcjob/bin:/opt/venv/bin:/a:/b"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "job-worker-0"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u1"),
        ("metadata.labels['role']", "worker"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a.io/b']", "c"),
        ("spec.nodeName", "this-machine"),
        ("spec.serviceAccountName", "default"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1"),
        ("status.podIP", "10.0.0.2"),
        ("status.podIPs", "10.0.0.2,fd00::2"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert _value({"fieldRef": {"fieldPath": path}}) == value


@pytest.mark.parametrize(
    ("resource", "divisor", "container", "value"),
    [
        ("limits.cpu", None, "other", "2"),
        ("limits.cpu", "1m", "other", "1500"),
        ("limits.memory", "1Mi", "other", "1024"),
        ("limits.memory", "0", "other", "1073741824"),
        ("requests.cpu", "1m", "other", "500"),
        ("requests.memory", None, "other", "1073741824"),
        ("limits.cpu", None, None, "8"),
        ("limits.memory", "1Gi", None, "16"),
        ("requests.cpu", None, None, "0"),
    ],
)
def test_resources_in_units_of_the_divisor_rounded_up(
    resource: str, divisor: str | None, container: str | None, value: str
) -> None:
    reference = {"resource": resource, "divisor": divisor, "containerName": container}
    assert _value({"resourceFieldRef": reference}) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"configMapKeyRef": {"name": "c", "key": "key"}}, "value"),
        ({"secretKeyRef": {"name": "s", "key": "password"}}, "p\udcff"),
        ({"configMapKeyRef": {"name": "c", "key": "x", "optional": True}}, None),
        ({"secretKeyRef": {"name": "x", "key": "x", "optional": True}}, None),
    ],
)
def test_keys_of_config_maps_and_secrets(source: Object, value: str | None) -> None:
    assert _value(source) == value


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"configMapKeyRef": {"name": "x", "key": "k"}}, 'ConfigMap "x" does not exist'),
        ({"configMapKeyRef": {"name": "c", "key": "raw"}}, 'ConfigMap "c" has no key "raw"'),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, 'Secret "s" has no key "k"'),
        ({"fieldRef": {"fieldPath": "spec.nodename"}}, "'spec.nodename' is none"),
        ({"fieldRef": {"fieldPath": "metadata.labels"}}, "'metadata.labels' is none"),
        ({"resourceFieldRef": {"resource": "cpu"}}, "neither limits.RESOURCE nor"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "x"}}, 'container "x"'),
        ({"fileKeyRef": {"key": "k"}}, "fileKeyRef is not supported"),
    ],
)
def test_what_is_missing_is_named_with_container_and_variable(
    source: Object, sentence: str
) -> None:
    with pytest.raises(MissingReference) as raised:
        _value(source)
    assert str(raised.value).startswith("container main: variable V: ")
    assert sentence in str(raised.value)


def test_a_secret_that_is_no_base64_is_not_shown() -> None:
    with pytest.raises(MissingReference) as raised:
        _value({"secretKeyRef": {"name": "bad", "key": "password"}})
    assert "hunter2" not in str(raised.value)


def test_all_of_an_object_with_a_prefix_and_env_over_it() -> None:
    source = {"prefix": "P_", "configMapRef": {"name": "c"}}
    env = [{"name": "P_key", "value": "own"}, {"name": "SEEN", "value": "$(P_key)"}]
    variables = _environment(envFrom=[source], env=env)
    assert (variables["P_key"], variables["SEEN"], variables["P_$(X)"]) == ("own", "own", "y")
    assert "P_raw" not in variables


def test_an_object_that_env_from_lacks_counts_only_where_it_is_not_optional() -> None:
    _environment(envFrom=[{"secretRef": {"name": "x", "optional": True}}])
    with pytest.raises(MissingReference, match='Secret "x", which envFrom wants'):
        _environment(envFrom=[{"secretRef": {"name": "x"}}])


def test_names_that_no_variable_can_have_are_left_out_and_told() -> None:
    container = {"name": "main", "envFrom": [{"prefix": "=", "configMapRef": {"name": "c"}}]}
    environment = container_environment(_POD, container, _find, _DEFAULTS, {})
    assert set(environment.skipped) == {"=key", "=$(X)"}
    assert not any("=" in name for name in environment.variables)


def test_a_value_refers_only_to_variables_before_it_and_not_to_the_runtimes() -> None:
    variables = _environment(
        env=[
            {"name": "EARLY", "value": "$(LATE) $(HOME)"},
            {"name": "LATE", "value": "1"},
        ]
    )
    assert variables["EARLY"] == "$(LATE) $(HOME)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NONE)", "$(NONE)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$(A)$(A)", "11"),
        ("$$$$", "$$"),
        ("$(B)", "$(A)"),
    ],
)
def test_variables_in_texts(text: str, value: str) -> None:
    assert expanded(text, {"A": "1", "B": "$(A)"}) == value


@given(st.text(alphabet="$()AB "))
def test_doubling_every_dollar_keeps_any_text(text: str) -> None:
    assert expanded(text.replace("$", "$$"), {"A": "1"}) == text
    assert unknown_variables(text.replace("$", "$$"), {}) == ()


def test_command_and_args() -> None:
    container = {"command": ["sh", "-c"], "args": ["echo $(A) $$(A) $(B)"]}
    assert expanded_command(container, {"A": "1"}) == ("sh", "-c", "echo 1 $(A) $(B)")
