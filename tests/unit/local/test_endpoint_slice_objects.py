"""Which EndpointSlices a Service is to have."""

from typing import Any

import pytest

from vcjob.api.types import Object
from vcjob.local.endpoint_slice_objects import slices_of

READY = {"type": "Ready", "status": "True"}


def service(**spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "default", "uid": "s"}
    return {"metadata": metadata, "spec": {"selector": {"app": "web"}, **spec}}


def pod(
    name: str = "p",
    *,
    labels: Object | None = None,
    spec: Object | None = None,
    status: Object | None = None,
    **metadata: str,
) -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": labels or {"app": "web", "more": "x"},
            **metadata,
        },
        "spec": {"containers": [], "nodeName": "n", **(spec or {})},
        "status": {
            "podIP": "10.0.0.2",
            "phase": "Running",
            "conditions": [READY],
            **(status or {}),
        },
    }


def listening(name: str, number: int, protocol: str = "TCP") -> Object:
    port = {"name": "http", "containerPort": number, "protocol": protocol}
    return pod(name, spec={"containers": [{"ports": [port]}]})


@pytest.mark.parametrize(
    ("spec", "selected", "conditions"),
    [
        ({}, pod(), (True, True, False)),
        ({}, pod(status={"conditions": []}), (False, False, False)),
        ({"publishNotReadyAddresses": True}, pod(status={"conditions": []}), (True, False, False)),
        ({}, pod(deletionTimestamp="t"), (False, True, True)),
        ({"publishNotReadyAddresses": True}, pod(deletionTimestamp="t"), (True, True, True)),
        ({}, pod(status={"podIP": ""}), None),
        ({}, pod(status={"phase": "Succeeded"}), None),
        ({}, pod(status={"phase": "Failed"}), None),
        ({}, pod(labels={"app": "other"}), None),
        ({"selector": {"app": "web", "more": "y"}}, pod(), None),
    ],
)
def test_endpoints_tell_whether_a_pod_is_ready_serving_and_terminating(
    spec: Object, selected: Object, conditions: tuple[bool, bool, bool] | None
) -> None:
    (found,) = slices_of(service(**spec), [selected])

    expected = [] if conditions is None else [conditions]
    assert [tuple(e["conditions"].values()) for e in found["endpoints"]] == expected


def test_a_slice_names_service_pod_host_and_node() -> None:
    named = pod("a", spec={"hostname": "a-0", "subdomain": "web"})
    other = pod("b", spec={"hostname": "b-0", "subdomain": "elsewhere"})

    (found,) = slices_of(service(), [other, named])

    assert found["metadata"]["name"].startswith("web-")
    assert len(found["metadata"]["name"]) == len("web-") + 5
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Service", "s", True)
    assert found["addressType"] == "IPv4"
    first, second = found["endpoints"]
    assert (first["addresses"], first["hostname"], first["nodeName"]) == (["10.0.0.2"], "a-0", "n")
    assert first["targetRef"] == {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"}
    assert "hostname" not in second


@pytest.mark.parametrize(
    ("port", "number"),
    [
        ({"port": 80}, 80),
        ({"port": 80, "targetPort": 8080}, 8080),
        ({"port": 80, "targetPort": "http"}, 9000),
        ({"port": 80, "targetPort": "unknown"}, None),
        ({"port": 80, "targetPort": "http", "protocol": "UDP"}, None),
    ],
)
def test_ports_are_those_of_the_pods(port: Object, number: int | None) -> None:
    (found,) = slices_of(service(ports=[{"name": "w", **port}]), [listening("p", 9000)])

    assert len(found["endpoints"]) == 1
    expected = [] if number is None else [{"name": "w", "protocol": "TCP", "port": number}]
    assert found["ports"] == expected


def test_pods_with_other_numbers_of_a_named_port_have_their_own_slice() -> None:
    spec = {"ports": [{"port": 80, "targetPort": "http"}]}

    found = slices_of(service(**spec), [listening("a", 2), listening("b", 1), listening("c", 2)])

    assert [(s["ports"][0]["port"], len(s["endpoints"])) for s in found] == [(1, 1), (2, 2)]


def test_a_slice_has_at_most_a_thousand_endpoints() -> None:
    found = slices_of(service(), [pod(f"p{n:04}") for n in range(2001)])

    assert [len(s["endpoints"]) for s in found] == [1000, 1000, 1]
    assert len({s["metadata"]["name"] for s in found}) == 3


@pytest.mark.parametrize("spec", [{"selector": {}}, {"type": "ExternalName"}])
def test_what_selects_no_pods_has_no_slice(spec: Object) -> None:
    assert slices_of(service(**spec), [pod()]) == []
