"""Volumes of pod templates: each rule once."""

from typing import Any

import pytest

from vcjob.api.problems import format_path
from vcjob.core.checks.pod_volumes import check_pod_volumes

LABELS = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
A, B = {"key": "a", "path": "a"}, {"key": "a", "path": "b"}
CPU = "limits.cpu"
LIMIT = {"resource": CPU, "containerName": "main"}


@pytest.mark.parametrize(
    "volume",
    [
        {},
        {"emptyDir": {}},
        {"configMap": {"name": "c", "items": [A, B]}},
        {"secret": {"secretName": "s"}},
        {"downwardAPI": {"items": [LABELS, {"path": "cpu", "resourceFieldRef": LIMIT}]}},
        {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}},
                                   {"downwardAPI": {"items": [LABELS]}}]}},
        {"ephemeral": {"volumeClaimTemplate": {}}},
        {"nfs": {"server": "s", "path": "/data"}},
    ],
)  # fmt: skip
def test_right_volumes(volume: dict[str, Any]) -> None:
    assert list(check_pod_volumes([{"name": "v", **volume}], ("volumes",))) == []


@pytest.mark.parametrize(
    ("volume", "path", "words"),
    [
        ({"emptyDir": {}, "configMap": {"name": "c"}}, "", "one source, but this one has"),
        ({"configMap": {}}, ".configMap", "name"),
        ({"secret": {}}, ".secret", "secretName"),
        ({"secret": {"secretName": "s", "items": [A, B, A]}},
         ".secret.items[2].path", "items[2] writes the same file a as items[0]"),
        ({"downwardAPI": {"items": [LABELS, LABELS]}}, ".downwardAPI.items[1].path", "same file"),
        ({"downwardAPI": {"items": [{"path": "a"}]}}, ".downwardAPI.items[0]", "fieldRef"),
        ({"downwardAPI": {"items": [{**LABELS, "resourceFieldRef": LIMIT}]}},
         ".downwardAPI.items[0]", "resourceFieldRef"),
        ({"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"resource": CPU}}]}},
         ".downwardAPI.items[0].resourceFieldRef", "containerName"),
        ({"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}}]}},
         ".downwardAPI.items[0].fieldRef", "spec.nodeName"),
        ({"projected": {"sources": [{}]}}, ".projected.sources[0]", "configMap"),
        ({"projected": {"sources": [{"secret": {}}]}}, ".projected.sources[0].secret", "name"),
        ({"projected": {"sources": [{"downwardAPI": {"items": [{"path": "a"}]}}]}},
         ".projected.sources[0].downwardAPI.items[0]", "fieldRef"),
        ({"ephemeral": {}}, ".ephemeral", "lacks the volumeClaimTemplate"),
        ({"nfs": {"server": "s", "path": "data"}}, ".nfs.path", "must begin with /"),
    ],
)  # fmt: skip
def test_wrong_volumes(volume: dict[str, Any], path: str, words: str) -> None:
    (problem,) = check_pod_volumes([{"name": "v", **volume}], ("volumes",))
    assert format_path(problem.path).startswith(f"volumes[0]{path}")
    assert words in problem.message
