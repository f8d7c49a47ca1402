"""kubectl around Jobs: nodes, kinds of the user's own, and questions to the server."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.local

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  names: {kind: Boat, plural: boats, shortNames: [bo]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1, description: How long it is.}
              colour: {type: string, default: blue}
"""
BOAT = """
apiVersion: example.com/v1
kind: Boat
metadata: {name: b}
spec: {size: 3}
"""


@pytest.fixture
def config(engine_kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the server without pods that ``kubectl`` has elsewhere."""
    monkeypatch.setenv("KUBECONFIG", str(engine_kubeconfig))
    return engine_kubeconfig


def test_a_kind_of_the_users_own(kubectl):
    kubectl("apply", "-f", "-", given=DEFINITION)
    kubectl("wait", "--for=condition=established", "crd/boats.example.com", "--timeout=10s")
    kubectl("apply", "-f", "-", given=BOAT)
    assert kubectl("get", "bo").stdout.split() == ["NAME", "SIZE", "b", "3"]
    assert kubectl("get", "bo", "b", "-o", "jsonpath={.spec.colour}").stdout == "blue"
    assert "How long it is." in kubectl("explain", "boat.spec.size").stdout
    unknown = kubectl("apply", "-f", "-", given=BOAT.replace("size", "sise"), code=1)
    assert 'unknown field "spec.sise"' in unknown.stderr
    small = kubectl("apply", "-f", "-", given=BOAT.replace("3", "0"), code=1)
    assert "spec.size: size must be at least 1" in small.stderr
    kubectl("delete", "crd", "boats.example.com")
    assert "the server" in kubectl("get", "boats", code=1).stderr  # could not find, or has not


def test_the_machine_as_a_node(kubectl):
    kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=10s")
    assert kubectl("get", "nodes", "--no-headers").stdout.split()[1] == "Ready"
    described = kubectl("describe", "node", "this-machine").stdout
    assert "vcjob://" in described
    assert "kubernetes.io/arch=" in described


def test_a_cordoned_node_holds_pods_back(kubectl):
    kubectl("cordon", "this-machine")
    kubectl("run", "p", "--image=busybox", "--restart=Never", "--command", "--", "true")
    waits = "jsonpath={.status.conditions[0].reason}=Unschedulable"
    kubectl("wait", f"--for={waits}", "pod/p", "--timeout=20s")
    kubectl("uncordon", "this-machine")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/p", "--timeout=20s")
    kubectl("delete", "pod", "p")


def test_questions_to_the_server(kubectl):
    assert kubectl("auth", "can-i", "create", "pods").stdout == "yes\n"
    assert kubectl("auth", "can-i", "get", "/readyz").stdout == "yes\n"
    assert "[*]" in kubectl("auth", "can-i", "--list").stdout
    assert "vcjob" in kubectl("auth", "whoami").stdout
    assert kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert "is running at" in kubectl("cluster-info").stdout
    assert "batch.volcano.sh/v1alpha1" in kubectl("api-versions").stdout.split()
    assert "Metrics API not available" in kubectl("top", "node", code=1).stderr
    version = json.loads(kubectl("version", "-o", "json").stdout)["serverVersion"]
    assert version["gitVersion"].startswith("v1.34.")


def test_an_apply_that_takes_back_what_a_patch_changed_must_be_forced(kubectl):
    made = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}"
    kubectl("apply", "--server-side", "-f", "-", given=made)
    kubectl("patch", "cm", "m", "--type=merge", "-p", '{"data":{"a":"2"}}')
    refused = kubectl("apply", "--server-side", "-f", "-", given=made, code=1)
    assert 'conflict with "kubectl-patch": .data.a' in refused.stderr
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=made)
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data.a}").stdout == "1"
    kubectl("delete", "cm", "m")


def test_a_pod_has_the_priority_of_its_class(kubectl):
    kubectl("create", "priorityclass", "urgent", "--value=7")
    spec = '{"spec":{"priorityClassName":"urgent"}}'
    kubectl("run", "q", "--image=busybox", "--restart=Never", f"--overrides={spec}")
    assert kubectl("get", "pod", "q", "-o", "jsonpath={.spec.priority}").stdout == "7"
    kubectl("delete", "pod", "q", "--now")
    kubectl("delete", "priorityclass", "urgent")
