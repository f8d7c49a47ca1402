"""The Python clients of Kubernetes, as their users write programs, on the engine's API."""

import asyncio
import copy

import pytest

CONTAINER = {"name": "main", "image": "busybox"}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "tasks": [
            {
                "name": "worker",
                "replicas": 2,
                "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}},
            }
        ]
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}, "namespace": "default"},
    "spec": {"containers": [CONTAINER]},
}
JOBS = ("batch.volcano.sh", "v1alpha1", "default", "jobs")
NEEDED = "needs the client: pytest tests/kubernetes --clients"

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore"),  # what others' packages warn of is theirs
]


def job():
    return copy.deepcopy(JOB)


def test_the_official_client(config):
    kubernetes = pytest.importorskip("kubernetes", reason=NEEDED)
    client = kubernetes.client
    kubernetes.config.load_kube_config(str(config))
    custom, core = client.CustomObjectsApi(), client.CoreV1Api()

    custom.create_namespaced_custom_object(*JOBS, body=job())
    patch = {"spec": {"minAvailable": 1}}
    changed = custom.patch_namespaced_custom_object(*JOBS, "train", body=patch)
    assert changed["spec"]["minAvailable"] == 1

    core.create_namespaced_pod("default", POD)
    events = kubernetes.watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1)
    assert [(e["type"], e["object"].metadata.name) for e in events] == [("ADDED", "p")]
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("absent", "default")
    assert missing.value.status == 404
    found = core.list_namespaced_pod(
        "default", label_selector="app=x", field_selector="status.phase=Pending"
    )
    assert [pod.metadata.name for pod in found.items] == ["p"]
    assert core.delete_namespaced_pod("p", "default").status.phase == "Pending"
    assert custom.delete_namespaced_custom_object(*JOBS, "train")["status"] == "Success"


def test_the_official_clients_dynamic_part_and_server_side_apply(config):
    kubernetes = pytest.importorskip("kubernetes", reason=NEEDED)
    kubernetes.config.load_kube_config(str(config))
    dynamic = kubernetes.dynamic.DynamicClient(kubernetes.client.ApiClient())
    jobs = dynamic.resources.get(api_version="batch.volcano.sh/v1alpha1", kind="Job")

    jobs.server_side_apply(body=job(), name="train", namespace="default", field_manager="me")

    [found] = jobs.get(namespace="default").items
    assert found.spec.queue == "default"
    assert found.metadata.managedFields[0].manager == "me"


def test_leader_election_by_a_lease_sees_who_was_first(config):
    kubernetes = pytest.importorskip("kubernetes", reason=NEEDED)
    kubernetes.config.load_kube_config(str(config))
    leases = kubernetes.client.CoordinationV1Api()
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 5}
    leases.create_namespaced_lease("default", {"metadata": {"name": "leader"}, "spec": spec})
    seen = leases.read_namespaced_lease("leader", "default")
    seen.spec.holder_identity = "b"
    leases.replace_namespaced_lease("leader", "default", seen)

    with pytest.raises(kubernetes.client.ApiException) as late:
        leases.replace_namespaced_lease("leader", "default", seen)
    assert late.value.status == 409


def test_the_asynchronous_client(config):
    kubernetes = pytest.importorskip("kubernetes_asyncio", reason=NEEDED)

    async def scenario():
        await kubernetes.config.load_kube_config(str(config))
        async with kubernetes.client.ApiClient() as api:
            custom = kubernetes.client.CustomObjectsApi(api)
            core = kubernetes.client.CoreV1Api(api)
            await custom.create_namespaced_custom_object(*JOBS, job())
            await core.create_namespaced_pod("default", POD)
            watch = kubernetes.watch.Watch()
            async with watch.stream(
                core.list_namespaced_pod, "default", timeout_seconds=1
            ) as events:
                seen = [event["type"] async for event in events]
            listed = await custom.list_namespaced_custom_object(*JOBS)
            return seen, [item["metadata"]["name"] for item in listed["items"]]

    assert asyncio.run(scenario()) == (["ADDED"], ["train"])


def test_kr8s(config):
    kr8s = pytest.importorskip("kr8s", reason=NEEDED)
    from kr8s.asyncio.objects import Pod, new_class

    async def scenario():
        api = await kr8s.asyncio.api(kubeconfig=str(config))
        kind = new_class("Job", "batch.volcano.sh/v1alpha1", namespaced=True, plural="jobs")
        made = await kind(job(), api=api)
        await made.create()
        await made.patch({"spec": {"minAvailable": 1}})
        pod = await Pod(copy.deepcopy(POD), api=api)
        await pod.create()
        await pod.label({"a": "b"})
        names = [found.name async for found in api.get("vcjob")]
        await pod.delete()
        seen = made.spec.minAvailable, names, await pod.exists()
        await api._session.aclose()  # kr8s has nothing public by which its connections are closed
        return seen

    assert asyncio.run(scenario()) == (1, ["train"], False)


def test_lightkube(config):
    lightkube = pytest.importorskip("lightkube", reason=NEEDED)
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.resources.core_v1 import ConfigMap, Pod
    from lightkube.types import PatchType

    client = lightkube.Client(lightkube.KubeConfig.from_file(str(config)))
    kind = create_namespaced_resource("batch.volcano.sh", "v1alpha1", "Job", "jobs")
    client.create(kind(job()))
    client.create(Pod.from_dict(POD))
    patch = {"metadata": {"labels": {"a": "b"}}}
    changed = client.patch(Pod, "p", patch, patch_type=PatchType.STRATEGIC)
    assert changed.metadata.labels == {"app": "x", "a": "b"}
    wish = {"metadata": {"name": "m", "namespace": "default"}, "data": {"a": "1"}}
    applied = client.apply(ConfigMap.from_dict(wish), field_manager="me")
    assert applied.data == {"a": "1"}
    operation, seen = next(client.watch(Pod, server_timeout=20))
    assert (operation, seen.metadata.name) == ("ADDED", "p")
    client.delete(kind, "train")
    assert list(client.list(kind)) == []
