import json
from typing import Any

import pytest

from vcjob.api import names
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.registry import registry_of
from vcjob.plugins.selection import Selected, select
from vcjob.plugins.svc import PLUGIN


def svc(
    *tokens: str,
    annotations: dict[str, str] | None = None,
    name: str = "j",
    volumes: list[Object] | None = None,
    **tasks: Any,
) -> Selected:
    """The plugin for a job whose tasks are ``name=replicas`` or ``name=(replicas, pod spec)``."""
    listed = []
    for task, given in (tasks or {"a": 2}).items():
        replicas, spec = given if isinstance(given, tuple) else (given, {})
        template = {"spec": {"containers": [{"name": "c"}], **spec}}
        listed.append({"name": task.replace("_", "-"), "replicas": replicas, "template": template})
    job = Job.of(
        {
            "metadata": {"name": name, "namespace": "ns", "annotations": annotations or {}},
            "spec": {"tasks": listed, "plugins": {"svc": list(tokens)}, "volumes": volumes or []},
        }
    )
    return select(job, registry_of([PLUGIN])).plugins[0]


def objects(one: Selected) -> dict[str, Object]:
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in PLUGIN.objects(one.request)}


def problems(one: Selected) -> list[Problem]:
    return list(PLUGIN.problems(one.request))


def pod(one: Selected, task: str = "a", index: int = 0, **spec: Any) -> Object:
    name = names.pod_name(one.request.job.metadata.name, task, index)
    draft = PodDraft(name, task, index, {"containers": [{"name": "c"}], **spec}, {}, {})
    add = PLUGIN.pods(one.request)
    assert add
    add(draft)
    return draft.finished_spec()


def env_names(spec: Object) -> list[str]:
    return [entry["name"] for entry in spec["containers"][0].get("env", [])]


def test_host_lists_are_files_and_environment_of_one_config_map() -> None:
    assert objects(svc(ps=1, gpu_worker=2))["ConfigMap/j-svc"]["data"] == {
        "ps.host": "j-ps-0.j",
        "VC_PS_HOSTS": "j-ps-0.j",
        "VC_PS_NUM": "1",
        "gpu_worker.host": "j-gpu-worker-0.j\nj-gpu-worker-1.j",
        "VC_GPU_WORKER_HOSTS": "j-gpu-worker-0.j,j-gpu-worker-1.j",
        "VC_GPU_WORKER_NUM": "2",
    }


def test_only_pods_of_the_job_may_reach_it_and_those_that_the_user_names() -> None:
    peer = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    one = svc(annotations={names.NETWORK_POLICY_SOURCES: json.dumps([peer])})
    own = {"matchLabels": {names.JOB_NAME: "j", names.JOB_NAMESPACE: "ns"}}
    assert objects(one)["NetworkPolicy/j"]["spec"] == {
        "podSelector": own,
        "ingress": [{"from": [{"podSelector": own}, peer]}],
        "policyTypes": ["Ingress"],
    }
    assert "NetworkPolicy/j" not in objects(svc("--disable-network-policy"))


def test_service_and_policy_carry_the_users_labels_and_annotations() -> None:
    one = svc(
        annotations={
            names.SERVICE_LABELS: '{"a": "1"}',
            names.SERVICE_ANNOTATIONS: '{"b": "2"}',
            names.NETWORK_POLICY_LABELS: '{"c": "3"}',
            names.NETWORK_POLICY_ANNOTATIONS: '{"k8s.ovn.org/acl-logging": "{}"}',
        }
    )
    assert objects(one)["Service/j"]["metadata"] == {
        "name": "j",
        "labels": {"a": "1"},
        "annotations": {"b": "2"},
    }
    assert objects(one)["NetworkPolicy/j"]["metadata"] == {
        "name": "j",
        "labels": {"c": "3"},
        "annotations": {"k8s.ovn.org/acl-logging": "{}"},
    }
    assert not problems(one)


@pytest.mark.parametrize("address", ["10.1.0.5", "fd00::5", "Node-5.example.org"])
def test_an_address_is_a_number_or_a_name(address: str) -> None:
    one = svc(annotations={names.HOST_ADDRESSES: f'{{"a-1": "{address}"}}'})
    assert list(one.plugin.problems(one.request)) == []


def test_other_addresses_stand_in_the_lists_but_not_in_the_pods_names() -> None:
    one = svc(annotations={names.HOST_ADDRESSES: '{"a-1": "10.1.0.5"}'})
    assert objects(one)["ConfigMap/j-svc"]["data"]["VC_A_HOSTS"] == "j-a-0.j,10.1.0.5"
    assert pod(one, index=1)["hostname"] == "j-a-1"
    assert not problems(one)


def test_a_pod_is_told_its_own_host_if_the_user_wants_that() -> None:
    one = svc(annotations={names.INJECT_CURRENT_HOST: "true"})
    assert pod(one, index=1)["containers"][0]["env"][-1] == {
        "name": "VC_CURRENT_HOST",
        "value": "j-a-1.j",
    }
    assert "VC_CURRENT_HOST" not in env_names(pod(svc()))


def test_host_name_and_subdomain_of_the_template_stay() -> None:
    kept = pod(svc(), hostname="h", subdomain="s")
    assert (kept["hostname"], kept["subdomain"]) == ("h", "s")
    assert (pod(svc())["hostname"], pod(svc())["subdomain"]) == ("j-a-0", "j")


LONG = "n" * 50


def test_a_list_that_linux_would_not_pass_is_left_out_of_the_environment() -> None:
    one = svc(name=LONG, a=1300, b=1)
    assert env_names(pod(one)) == ["VC_A_NUM", "VC_B_HOSTS", "VC_B_NUM"]
    data = objects(one)[f"ConfigMap/{LONG}-svc"]["data"]
    assert len(data["a.host"].split()) == 1300
    assert data["VC_A_NUM"] == "1300"
    [problem] = problems(one)
    assert problem.warning
    assert problem.path == ("spec", "tasks", 0, "replicas")
    assert "VC_A_HOSTS" in problem.message


def size(obj: Object) -> int:
    return sum(len(key) + len(value) for key, value in obj["data"].items())


def test_copies_go_first_when_one_config_map_would_be_too_big() -> None:
    maps = objects(svc(name=LONG, a=5000, b=1))
    data = maps[f"ConfigMap/{LONG}-svc"]["data"]
    assert len(data["a.host"].split()) == 5000
    assert data["VC_A_HOSTS"] == ""
    assert data["b.host"]
    assert env_names(pod(svc(name=LONG, a=5000, b=1))) == ["VC_A_NUM", "VC_B_NUM"]


def test_lists_that_do_not_fit_into_one_config_map_get_one_each() -> None:
    one = svc(name=LONG, a=8000, b=8000)
    maps = {key: obj for key, obj in objects(one).items() if obj["kind"] == "ConfigMap"}
    assert list(maps) == [
        f"ConfigMap/{LONG}-svc-a",
        f"ConfigMap/{LONG}-svc-b",
        f"ConfigMap/{LONG}-svc",
    ]
    assert all(size(obj) <= 1024 * 1024 for obj in maps.values())
    assert len(maps[f"ConfigMap/{LONG}-svc-b"]["data"]["b.host"].split()) == 8000
    assert maps[f"ConfigMap/{LONG}-svc"]["data"]["VC_B_NUM"] == "8000"


def test_pods_of_big_jobs_declare_every_config_map_that_growth_may_need() -> None:
    [small] = pod(svc())["volumes"]
    assert small == {"name": "j-svc", "configMap": {"name": "j-svc"}}
    [big] = pod(svc(name=LONG, a=1300, b=1))["volumes"]
    sources = [(one["configMap"]["name"], one["configMap"].get("optional")) for one in
               big["projected"]["sources"]]  # fmt: skip
    assert sources == [
        (f"{LONG}-svc", None),
        (f"{LONG}-svc-a", True),
        (f"{LONG}-svc-b", True),
    ]


def test_a_list_that_fits_nowhere_is_refused_with_the_number_that_fits() -> None:
    one = svc(a=2**31 - 1)
    [problem] = problems(one)
    assert not problem.warning
    fitting = int(problem.hint.split()[-3])
    assert not [other for other in problems(svc(a=fitting)) if not other.warning]
    assert [other for other in problems(svc(a=fitting + 1)) if not other.warning]
    assert objects(one)["ConfigMap/j-svc"]["data"]["a.host"] == ""


@pytest.mark.parametrize(
    ("one", "message", "warning"),
    [
        (svc(name="my.job"), "a Service named my.job", False),
        (svc(name="n" * 60), "a volume named", False),
        (svc(name="1j"), "before 1.34", True),
        (svc(a=(2, {"hostname": "h"})), "the same host name", True),
        (svc(a=(1, {"subdomain": "s"})), "end in .s", True),
        (svc(a=(1, {"volumes": [{"name": "j-svc"}]})), "a volume of the same name", False),
        (
            svc(a=(1, {"containers": [{"volumeMounts": [{"mountPath": "/etc/volcano"}]}]})),
            "mounts the host lists",
            False,
        ),
        (svc(volumes=[{"mountPath": "/etc/volcano"}]), "mounts the host lists", False),
        (svc(annotations={names.INJECT_CURRENT_HOST: "yes"}), '"true" or "false"', False),
        (svc(annotations={names.SERVICE_LABELS: '{"a b": ""}'}), 'the key "a b"', False),
        (svc(annotations={names.SERVICE_LABELS: '{"a": "/"}'}), 'the value "/"', False),
        (svc(annotations={names.SERVICE_ANNOTATIONS: '{"a": 1}'}), "a JSON object", False),
        (svc(annotations={names.NETWORK_POLICY_SOURCES: "{}"}), "a JSON list", False),
        *(
            (svc(annotations={names.NETWORK_POLICY_SOURCES: f"[{peer}]"}), message, False)
            for peer, message in (
                ("{}", "sources[0]: a peer is"),
                ('{"podSelector": null}', "sources[0]: a peer is"),
                ('{"ipBlock": {}}', "sources[0].ipBlock.cidr: "),
                ('{"ipBlock": {"cidr": "ten"}}', "sources[0].ipBlock.cidr: "),
                ('{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x"]}}', "ipBlock.except[0]: "),
                ('{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}', "write two peers"),
                ('{"podSelector": {"matchLabels": 7}}', "sources[0].podSelector.matchLabels: "),
                (
                    '{"podSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}',
                    "matchExpressions[0].operator: ",
                ),
                ('{"namespaceSelector": 7}', "sources[0].namespaceSelector: "),
            )
        ),
        (svc(annotations={names.HOST_ADDRESSES: "[]"}), "a JSON object", False),
        (svc(annotations={names.HOST_ADDRESSES: '{"a-2": "x"}'}), 'no host "a-2"', True),
        (svc(annotations={names.HOST_ADDRESSES: '{"a": "x"}'}), 'no host "a"', True),
        (svc(annotations={names.HOST_ADDRESSES: '{"a-1": "x,y"}'}), "is no IP address", False),
        (svc(annotations={names.HOST_ADDRESSES: '{"a-1": ""}'}), "is no IP address", False),
        (svc(annotations={names.HOST_ADDRESSES: '{"a-1": "fe80::1%a,b"}'}), "no IP address", False),
    ],
)
def test_what_cannot_work_is_told(one: Selected, message: str, warning: bool) -> None:
    [problem] = problems(one)
    assert message in problem.message
    assert problem.warning == warning
    assert problem.path
