"""Objects of Kubernetes' own kinds that no cluster would take are refused, and others are not."""

import asyncio
from typing import Any

import pytest
from served import PODS, Answer, served

CORE = "/api/v1/namespaces/default"
CLAIMS, SECRETS, EVENTS = (
    f"{CORE}/{one}" for one in ("persistentvolumeclaims", "secrets", "events")
)
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
STORAGE = {"requests": {"storage": "1Gi"}}


def container(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [container()], **spec}}


def answer_to(path: str, body: dict[str, Any]) -> Answer:
    async def scenario() -> Answer:
        async with served() as ask:
            return await ask("POST", path, {"metadata": {"name": "n"}, **body})

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (PODS, pod(initContainers=[container()]), "spec.containers[0]"),
        (PODS, pod(containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]),
         "spec.containers[0].volumeMounts[0]"),
        (PODS, pod(containers=[container(livenessProbe={})]), "livenessProbe"),
        (PODS, pod(containers=[container(resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
                               container("d")]), "resources"),
        (PODS, pod(ephemeralContainers=[container("d")]), "ephemeralContainers"),
        (PODS, pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
         "one source"),
        (CLAIMS, {"spec": {"resources": STORAGE}}, "spec.accessModes"),
        (CLAIMS, {"spec": {"accessModes": ["ReadWriteOnce"]}}, "storage is required"),
        (CLAIMS, {"spec": {"accessModes": ["ReadWriteOnce"],
                           "resources": {"requests": {"storage": "0"}}}}, "greater than zero"),
        (CLASSES, {"value": 1_000_000_001}, "at most 1,000,000,000"),
        (CLASSES, {"metadata": {"name": "system-n"}, "value": 1}, "the system's own"),
        (SECRETS, {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, 'data["tls.key"]'),
        (SECRETS, {"type": "kubernetes.io/basic-auth"}, "one of the keys username, password"),
        (SECRETS, {"type": "kubernetes.io/dockerconfigjson"}, ".dockerconfigjson"),
        (EVENTS, {"involvedObject": {"namespace": "other"}}, "involvedObject.namespace"),
        (LEASES, {"spec": {"leaseDurationSeconds": 0}}, "spec.leaseDurationSeconds"),
        (LEASES, {"spec": {"leaseTransitions": -1}}, "spec.leaseTransitions"),
    ],
)  # fmt: skip
def test_what_no_cluster_takes_is_refused(path: str, body: dict[str, Any], said: str) -> None:
    answer = answer_to(path, body)

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert said in answer.body["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PODS, pod(volumes=None, initContainers=None)),
        (PODS, pod(initContainers=[container("before")],
                   volumes=[{"name": "v"}],
                   containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}],
                                         livenessProbe={"tcpSocket": {"port": 1}})])),
        (CLAIMS, {"spec": {"accessModes": ["ReadWriteOnce"], "resources": STORAGE}}),
        (CLASSES, {"value": -5}),
        (CLASSES, {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}),
        (SECRETS, {"type": "kubernetes.io/basic-auth", "stringData": {"password": "x"}}),
        (SECRETS, {"type": "of-my-own"}),
        (EVENTS, {"involvedObject": {"kind": "Node", "name": "n"}}),
        (EVENTS, {"involvedObject": {"namespace": "default", "name": "p"}}),
        (LEASES, {"spec": {"leaseDurationSeconds": 1, "leaseTransitions": 0}}),
    ],
)  # fmt: skip
def test_what_a_cluster_takes_is_taken(path: str, body: dict[str, Any]) -> None:
    answer = answer_to(path, body)

    assert answer.code == 201, answer.body
