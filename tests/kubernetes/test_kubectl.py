"""kubectl itself on the engine's API: what users type works as on a cluster."""

import subprocess

import pytest
import yaml

from vcjob.api import kinds
from vcjob.api.crd import crd

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  plugins: {svc: [], env: []}
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: busybox, command: [sleep, "1000"]}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: x}}
spec:
  containers: [{name: main, image: busybox, env: [{name: A, value: "1"}]}]
"""
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1", b: "2"}
"""


def test_apply_creates_changes_and_leaves_alone(kubectl):
    assert kubectl("apply", "-f", "-", given=POD).stdout == "pod/p created\n"
    assert kubectl("apply", "-f", "-", given=POD).stdout == "pod/p unchanged\n"
    changed = POD.replace("busybox", "other")
    assert kubectl("apply", "-f", "-", given=changed).stdout == "pod/p configured\n"
    image = kubectl("get", "pod", "p", "-o", "jsonpath={.spec.containers[0].image}").stdout
    assert image == "other"


def test_a_kind_that_is_not_served_is_named(kubectl):
    deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
    refused = kubectl("apply", "-f", "-", given=deployment, code=1)
    assert 'no matches for kind "Deployment" in version "apps/v1"' in refused.stderr


def test_server_side_apply_lets_go_of_what_is_no_longer_wished(kubectl):
    apply = ("apply", "--server-side", "-f", "-")
    kubectl(*apply, given=MAP)
    kubectl(*apply, given=MAP.replace(', b: "2"', ""))
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data}").stdout == '{"a":"1"}'

    other = kubectl(*apply, "--field-manager=other", given=MAP.replace('"1"', '"9"'), code=1)
    assert 'conflict with "kubectl"' in other.stderr


def test_jobs_are_found_by_every_name_and_shown_in_columns(kubectl):
    kubectl("create", "-f", "-", given=JOB)
    for name in ("vcjob", "vj", "jobs.batch.volcano.sh", "job.v1alpha1.batch.volcano.sh"):
        lines = kubectl("get", name, "-o", "wide").stdout.splitlines()
        assert lines[0].split() == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE", "QUEUE"]
        assert lines[1].split()[0] == "train"
        assert lines[1].split()[-1] == "default"


def test_every_form_of_output_works(kubectl):
    kubectl("apply", "-f", "-", given=POD)
    assert yaml.safe_load(kubectl("get", "pod", "p", "-o", "yaml").stdout)["kind"] == "Pod"
    columns = "custom-columns=N:.metadata.name,P:.status.phase"
    assert kubectl("get", "pods", "-o", columns).stdout.split() == ["N", "P", "p", "Pending"]
    assert kubectl("get", "pods", "-l", "app in (x)", "-o", "name").stdout == "pod/p\n"
    assert kubectl("get", "pods", "-A", "--field-selector", "status.phase=Running").stdout == ""


def test_labels_annotations_and_patches_of_three_kinds(kubectl):
    kubectl("apply", "-f", "-", given=POD)
    kubectl("label", "pod", "p", "a=b")
    kubectl("annotate", "pod", "p", "c=d")
    kubectl("patch", "pod", "p", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    operation = '[{"op":"add","path":"/metadata/labels/j","value":"2"}]'
    kubectl("patch", "pod", "p", "--type=json", "-p", operation)
    kubectl("patch", "pod", "p", "-p", '{"spec":{"containers":[{"name":"main","image":"new"}]}}')
    pod = yaml.safe_load(kubectl("get", "pod", "p", "-o", "yaml").stdout)
    assert pod["metadata"]["labels"] == {"app": "x", "a": "b", "m": "1", "j": "2"}
    assert pod["metadata"]["annotations"]["c"] == "d"
    assert pod["spec"]["containers"][0]["image"] == "new"
    assert pod["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_a_wrong_job_is_refused_with_the_reason(kubectl):
    wrong = JOB.replace("spec:\n", "spec:\n  queue: nowhere\n", 1)
    assert 'there is no queue "nowhere"' in kubectl("apply", "-f", "-", given=wrong, code=1).stderr
    unknown = JOB.replace("spec:\n", "spec:\n  minAvailible: 1\n", 1)
    refused = kubectl("create", "-f", "-", given=unknown, code=1)
    assert 'unknown field "spec.minAvailible"' in refused.stderr


def test_scale_is_refused_with_the_command_to_use(kubectl):
    kubectl("create", "-f", "-", given=JOB)
    refused = kubectl("scale", "vcjob/train", "--replicas=3", code=1)
    assert "vcjob scale train TASK=N" in refused.stderr


def test_describe_explain_and_api_resources(kubectl):
    kubectl("apply", "-f", "-", given=POD)
    assert kubectl("describe", "pod", "p").stdout.split().count("busybox") == 1
    explained = kubectl("explain", "vcjob.spec.tasks.template.spec.containers").stdout
    assert "FIELD: containers <[]Container>" in explained
    assert "volumeMounts" in explained
    assert "Scheduling queue" in kubectl("explain", "podgroup.spec.queue").stdout
    resources = kubectl("api-resources", "--api-group=batch.volcano.sh").stdout
    assert "vcjob,vj" in resources


def test_a_deletion_waits_until_all_is_gone(kubectl):
    kubectl("apply", "-f", "-", given=JOB)
    assert "deleted" in kubectl("delete", "vcjob", "train", "--wait", "--timeout=20s").stdout
    assert kubectl("get", "vcjob", "--ignore-not-found").stdout == ""
    kubectl("apply", "-f", "-", given="apiVersion: v1\nkind: Namespace\nmetadata: {name: room}")
    kubectl("apply", "-n", "room", "-f", "-", given=MAP)
    kubectl("delete", "ns", "room", "--timeout=20s")
    assert "NotFound" in kubectl("get", "ns", "room", code=1).stderr


def test_wait_sees_a_condition_that_is_there_and_times_out_on_one_that_is_not(kubectl):
    kubectl("apply", "-f", "-", given=POD)
    kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Pending", "--timeout=20s")
    kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=1s", code=1)


def test_a_directory_with_a_kustomization_is_applied(kubectl, tmp_path):
    (tmp_path / "map.yaml").write_text(MAP)
    (tmp_path / "kustomization.yaml").write_text("namePrefix: my-\nresources: [map.yaml]\n")
    assert kubectl("apply", "-k", str(tmp_path)).stdout == "configmap/my-settings created\n"


def test_our_definitions_can_be_installed_over_what_is_served(kubectl):
    definition = yaml.safe_dump(crd(kinds.JOB))
    kubectl("apply", "--server-side", "-f", "-", given=definition)
    kubectl("wait", "crd/jobs.batch.volcano.sh", "--for=condition=Established", "--timeout=20s")
    kubectl("create", "-f", "-", given=JOB)


def test_get_watch_prints_what_happens(kubectl, config, program):
    kubectl("apply", "-f", "-", given=POD)
    with subprocess.Popen(
        [program("kubectl"), "get", "pods", "-w"], stdout=subprocess.PIPE, text=True
    ) as watch:
        assert watch.stdout is not None
        seen = [watch.stdout.readline().split()[0] for _ in range(2)]
        kubectl("apply", "-f", "-", given=POD.replace("name: p,", "name: q,"))
        seen.append(watch.stdout.readline().split()[0])
        watch.terminate()
    assert seen == ["NAME", "p", "q"]


@pytest.mark.parametrize(
    ("made", "path", "expected"),
    [
        (("namespace", "made"), "{.status.phase}", "Active"),
        (("configmap", "made", "--from-literal=a=1"), "{.data}", '{"a":"1"}'),
        (("secret", "generic", "made", "--from-literal=a=1"), "{.data.a}", "MQ=="),
        (("serviceaccount", "made"), "{.kind}", "ServiceAccount"),
        (("service", "clusterip", "made", "--tcp=80:http"), "{.spec.ports[0].targetPort}", "http"),
        (("priorityclass", "made", "--value=-7"), "{.value}", "-7"),
    ],
)
def test_create_of_one_object_which_kubectl_sends_as_protobuf(kubectl, made, path, expected):
    kubectl("create", *made)
    assert kubectl("get", made[0], "made", "-o", f"jsonpath={path}").stdout == expected
