"""What holds for the objects of any Job that the checks accept."""

import json
from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from vcjob.api.defaults import apply_defaults
from vcjob.api.names import TASK_INDEX, TASK_SPEC
from vcjob.api.problems import errors
from vcjob.api.validation import (
    config_map_key,
    dns_1123_label,
    dns_1123_subdomain,
    env_name,
    label_value,
)
from vcjob.core.check import check
from vcjob.core.render import blueprint_to_render, rendered_objects
from vcjob.plugins.registry import installed_plugins

REGISTRY = installed_plugins(third_party=False)
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.sampled_from(["1", "2"]), max_size=2
)
TEXTS = st.dictionaries(st.sampled_from(["a", "b.c/d"]), st.sampled_from(["", "x", "1"]))
CONTAINERS = st.fixed_dictionaries(
    {"name": LABELS, "image": st.just("i")},
    optional={
        "env": st.just([{"name": "VC_TASK_INDEX", "value": "mine"}]),
        "resources": st.fixed_dictionaries({"requests": AMOUNTS}),
        "volumeMounts": st.just([]),
    },
)
POD_SPECS = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINERS, min_size=1, max_size=2, unique_by=lambda one: one["name"])},
    optional={
        "initContainers": st.lists(CONTAINERS, max_size=1),
        "hostname": LABELS,
        "subdomain": LABELS,
        "hostNetwork": st.booleans(),
        "restartPolicy": st.sampled_from(["Never", "OnFailure"]),
    },
)
TASKS = st.fixed_dictionaries(
    {
        "replicas": st.integers(0, 12),
        "template": st.fixed_dictionaries(
            {"spec": POD_SPECS},
            optional={"metadata": st.fixed_dictionaries({"labels": TEXTS, "annotations": TEXTS})},
        ),
    },
    optional={"name": LABELS},
)
PLUGINS = st.dictionaries(
    st.sampled_from(REGISTRY.names()),
    st.lists(st.sampled_from(["--inject-hosts-env=false", "-disable-network-policy"]), max_size=1),
)
VOLUMES = st.lists(
    st.fixed_dictionaries(
        {"mountPath": st.sampled_from(["/a", "/b"]), "volumeClaim": st.just({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})}
    ),
    max_size=2,
    unique_by=lambda one: one["mountPath"],
)  # fmt: skip
JOBS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("batch.volcano.sh/v1alpha1"),
        "kind": st.just("Job"),
        "metadata": st.fixed_dictionaries({"name": LABELS}, optional={"labels": TEXTS}),
        "spec": st.fixed_dictionaries(
            {"tasks": st.lists(TASKS, min_size=1, max_size=3)},
            optional={"plugins": PLUGINS, "volumes": VOLUMES},
        ),
    }
)


def render(job: dict[str, Any]) -> list[dict[str, Any]]:
    blueprint = blueprint_to_render(apply_defaults(job), REGISTRY)
    return list(rendered_objects(blueprint))


@given(JOBS)
def test_an_accepted_job_becomes_objects_with_valid_names(job: dict[str, Any]) -> None:
    assume(not errors(check(job)))
    objects = render(job)
    keys = [(obj["kind"], obj["metadata"]["name"]) for obj in objects]
    assert len(keys) == len(set(keys))
    for obj in objects:
        assert not dns_1123_subdomain(obj["metadata"]["name"])
        assert not any(map(label_value, obj["metadata"].get("labels", {}).values()))
        if obj["kind"] in ("Service", "Pod"):
            assert not dns_1123_label(obj["metadata"]["name"])
        if obj["kind"] == "ConfigMap":
            assert not any(map(config_map_key, obj["data"]))
        if obj["kind"] == "Pod":
            spec = obj["spec"]
            volumes = [volume["name"] for volume in spec.get("volumes", [])]
            assert not any(map(dns_1123_label, [*volumes, spec.get("hostname", "x")]))
            assert len(volumes) == len(set(volumes))
            for container in [*spec["containers"], *spec.get("initContainers", [])]:
                mounts = container.get("volumeMounts", [])
                paths = [mount["mountPath"] for mount in mounts]
                assert len(paths) == len(set(paths))
                assert {mount["name"] for mount in mounts} <= set(volumes)
                assert not any(env_name(entry["name"]) for entry in container.get("env", []))


@given(
    st.sets(st.sampled_from(["pytorch", "mpi", "ray"]), min_size=1),
    st.tuples(POD_SPECS, POD_SPECS, POD_SPECS),
)
def test_kubernetes_takes_the_ports_that_frameworks_declare(
    plugins: set[str], specs: tuple[Any, ...]
) -> None:
    """Names differ within a container; on the network of the node numbers differ within a pod."""
    tasks = [
        {"name": name, "replicas": 1, "template": {"spec": spec}}
        for name, spec in zip(("master", "worker", "head"), specs, strict=True)
    ]
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"plugins": {name: [] for name in plugins}, "tasks": tasks},
    }
    assume(not errors(check(job)))
    for pod in (obj["spec"] for obj in render(job) if obj["kind"] == "Pod"):
        for group in ("containers", "initContainers"):
            declared = [container.get("ports", []) for container in pod.get(group, [])]
            for ports in declared:
                listed = [port["name"] for port in ports]
                assert len(listed) == len(set(listed))
            if pod.get("hostNetwork") and group == "containers":
                numbers = [port["containerPort"] for ports in declared for port in ports]
                assert len(numbers) == len(set(numbers))


@given(JOBS)
def test_references_to_config_maps_are_never_empty(job: dict[str, Any]) -> None:
    assume(not errors(check(job)))
    objects = render(job)
    maps = {obj["metadata"]["name"]: obj["data"] for obj in objects if obj["kind"] == "ConfigMap"}
    for obj in objects:
        for container in obj.get("spec", {}).get("containers", []) if obj["kind"] == "Pod" else []:
            for entry in container.get("env", []):
                if "valueFrom" in entry:
                    reference = entry["valueFrom"]["configMapKeyRef"]
                    assert reference["key"] in maps[reference["name"]]


@given(JOBS)
def test_each_task_has_its_replicas_without_a_gap(job: dict[str, Any]) -> None:
    assume(not errors(check(job)))
    pods = [obj["metadata"]["labels"] for obj in render(job) if obj["kind"] == "Pod"]
    wanted = [
        (task["name"], str(index))
        for task in apply_defaults(job)["spec"]["tasks"]
        for index in range(task["replicas"])
    ]
    assert [(labels[TASK_SPEC], labels[TASK_INDEX]) for labels in pods] == wanted


@given(JOBS, st.randoms(use_true_random=False))
def test_the_same_job_gives_the_same_bytes_however_its_plugins_are_ordered(
    job: dict[str, Any], random: Any
) -> None:
    assume(not errors(check(job)))
    shuffled = json.loads(json.dumps(job))
    if plugins := list(shuffled["spec"].get("plugins", {}).items()):
        random.shuffle(plugins)
        shuffled["spec"]["plugins"] = dict(plugins)
    assert msgspec.json.encode(render(shuffled)) == msgspec.json.encode(render(job))
