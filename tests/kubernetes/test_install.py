"""What ``vcjob manifests`` prints, given to kubectl and to the API of the engine."""

import json
import subprocess
import sys

import pytest
import yaml

from vcjob.api.crd import INSTALLED

NEEDED = "needs the client: pytest tests/kubernetes --clients"
NAMES = sorted(f"{kind.plural}.{kind.group}" for kind in INSTALLED)


def manifests(*arguments):
    """The text that is printed, and what is said beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "vcjob", "manifests", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    return done.stdout, done.stderr


def lines(*says):
    crd = "customresourcedefinition.apiextensions.k8s.io"
    return {f"{crd}/{name} {said}" for name in NAMES for said in says}


def test_definitions_are_applied_and_applied_again(kubectl):
    text, _ = manifests("--only", "crds")
    applied = kubectl("apply", "-f", "-", given=text).stdout
    assert set(applied.splitlines()) == lines("created")
    again = kubectl("apply", "-f", "-", given=text).stdout
    assert set(again.splitlines()) == lines("unchanged")
    ours = kubectl("get", "crds", "-l", "app.kubernetes.io/part-of=vcjob", "-o", "name").stdout
    assert set(ours.split()) == {
        f"customresourcedefinition.apiextensions.k8s.io/{n}" for n in NAMES
    }


def test_names_and_columns_are_known_to_kubectl(kubectl):
    kubectl("apply", "-f", "-", given=manifests("--only", "crds")[0])
    for short in ("vj", "vcjob", "pg", "podgroup-v1beta1", "q", "queue-v1beta1"):
        kubectl("get", short)
    shown = kubectl("get", "q").stdout.splitlines()
    assert shown[0].split() == ["NAME", "PARENT"]


def volcanos(text):
    """The same definitions as Volcano might have them: other labels, other schemas."""
    for one in yaml.safe_load_all(text):
        one["metadata"]["labels"] = {"app.kubernetes.io/part-of": "volcano"}
        for version in one["spec"]["versions"]:
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version["schema"] = {"openAPIV3Schema": schema}
        yield one


def test_definitions_of_others_are_seen_and_left_out(kubectl, config):
    theirs = list(volcanos(manifests("--only", "crds")[0]))
    kubectl("create", "-f", "-", given=yaml.safe_dump_all(theirs[:2]))
    printed, said = manifests("--context", "vcjob", "--kubeconfig", config)
    present = [one["metadata"]["name"] for one in theirs[:2]]
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(printed)
             if one and one["kind"] == "CustomResourceDefinition"]  # fmt: skip
    assert sorted([*names, *present]) == NAMES
    for name in present:
        assert f"CustomResourceDefinition {name} is there and not ours: left out" in said


def test_our_own_definitions_are_printed_again(kubectl, config):
    kubectl("apply", "-f", "-", given=manifests("--only", "crds")[0])
    printed, _ = manifests("--context", "vcjob", "--kubeconfig", config, "--only", "crds")
    assert sorted(one["metadata"]["name"] for one in yaml.safe_load_all(printed) if one) == NAMES


def test_queues_of_others_are_left_out(config):
    printed, said = manifests("--context", "vcjob", "--kubeconfig", config, "--only", "queues")
    assert [one for one in yaml.safe_load_all(printed) if one] == []
    assert "Queue default is there and not ours: left out" in said


def test_volcano_is_seen_by_its_lease(kubectl, config):
    kubectl("create", "namespace", "volcano-system")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "vc-controller-manager", "namespace": "volcano-system"},
        "spec": {"holderIdentity": "x"},
    }
    kubectl("create", "-f", "-", given=json.dumps(lease))
    printed, said = manifests("--context", "vcjob", "--kubeconfig", config)
    assert "Volcano is installed there" in said
    roles = [one["metadata"] for one in yaml.safe_load_all(printed) if one["kind"] == "Role"]
    assert "volcano-system" in [role["namespace"] for role in roles]
    _, said = manifests(
        "--context", "vcjob", "--kubeconfig", config, "--volcano-namespace", "elsewhere"
    )
    assert "Volcano is installed there" not in said


def test_server_side_apply_replaces_nothing_of_others(kubectl):
    ours = manifests("--only", "crds")[0]
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, "--field-manager=helm", given=yaml.safe_dump_all(volcanos(ours)))
    refused = kubectl(*apply, given=ours, code=1)
    assert 'conflict with "helm": .spec.versions' in refused.stderr


def test_all_that_a_server_serves_is_applied_in_one_go(kubectl):
    """The engine has no workloads and no roles, which kubectl says of each; the rest is there."""
    text, _ = manifests()
    objects = [one for one in yaml.safe_load_all(text) if one]
    served = {line.split()[-1] for line in kubectl("api-resources").stdout.splitlines()}
    lacking = [one["kind"] for one in objects if one["kind"] not in served]
    done = kubectl("apply", "--validate=false", "-f", "-", given=text, code=1 if lacking else 0)
    assert len(done.stdout.splitlines()) == len(objects) - len(lacking) > 8
    assert done.stderr.count("resource mapping not found") == len(lacking)
    kubectl("get", "serviceaccount", "vcjob-operator", "-n", "vcjob-system")


@pytest.mark.clients
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "arguments", [(), ("--namespaces", "a,b"), ("--take-over", "--priority-class", "x")]
)
def test_every_field_is_known_to_the_official_client(arguments):
    """What its models do not know they drop: it is missing when they are written again."""
    client = pytest.importorskip("kubernetes", reason=NEEDED).client
    api = client.ApiClient()
    text, _ = manifests(*arguments)
    for obj in yaml.safe_load_all(text):
        version = obj["apiVersion"].rpartition("/")[2]
        model = f"{version.capitalize()}{obj['kind']}"
        read = api.deserialize(json.dumps(obj), model, "application/json")
        assert api.sanitize_for_serialization(read) == obj
