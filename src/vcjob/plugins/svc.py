"""The svc plugin: pods of a job find each other by name. Source: plugins.md section 3.

It gives every pod a host name below the headless Service of the job, lists all host names in a
ConfigMap (mounted as files, and given as environment), and lets only pods of the job reach them.
"""

import ipaddress
from collections.abc import Iterator, Mapping

from vcjob.api import kinds, names
from vcjob.api.problems import Problem
from vcjob.api.types import Job, Object
from vcjob.api.validation import dns_1035_label, dns_1123_label, dns_1123_subdomain
from vcjob.plugins import options
from vcjob.plugins.base import AddToPod, Argument, Plugin, Request
from vcjob.plugins.draft import PodDraft
from vcjob.plugins.host_lists import (
    MOST_ENV_BYTES,
    MOST_LIST_BYTES,
    HostListLayout,
    env_bytes,
    layout_of,
    room_of,
)
from vcjob.plugins.hosts import TaskHosts, pod_spec
from vcjob.plugins.mounts import mount_problems

MOUNT_PATH = "/etc/volcano"
CURRENT_HOST = "VC_CURRENT_HOST"


def _addresses(request: Request) -> Mapping[tuple[str, int], str]:
    """The addresses that the user wants to see in place of names (user case P17)."""
    given = options.text_map(request.job, names.HOST_ADDRESSES)
    return {_host_of(pod): address for pod, address in given.items() if _host_of(pod)[1] >= 0}


def _host_of(pod: str) -> tuple[str, int]:
    """Task and index of ``<task>-<index>``; index -1 if it is none."""
    task, _, index = pod.rpartition("-")
    return task, int(index) if index.isascii() and index.isdigit() and len(index) < 10 else -1


def _objects(request: Request) -> Iterator[Object]:
    yield from _config_maps(request)
    yield _service(request)
    if not request.switch("disable-network-policy"):
        yield _network_policy(request)


def _config_maps(request: Request) -> Iterator[Object]:
    layout = layout_of(request.hosts)
    job = request.job.metadata.name
    data: dict[str, str] = {}
    for task in request.hosts:
        addresses = () if task.task in layout.too_big else task.addresses
        if layout.split:
            own_name = names.task_host_config_map_name(job, task.task)
            yield _config_map(own_name, {names.host_file_key(task.task): "\n".join(addresses)})
        else:
            data[names.host_file_key(task.task)] = "\n".join(addresses)
        # The key stays when the list is left out: a container that was made while the list was
        # shorter refers to it, and could not be restarted without.
        data[names.hosts_variable(task.task)] = ",".join(addresses) if layout.copies else ""
        data[names.count_variable(task.task)] = str(task.count)
    yield _config_map(names.host_config_map_name(job), data)


def _config_map(name: str, data: dict[str, str]) -> Object:
    return {
        "apiVersion": kinds.CONFIG_MAP.api_version,
        "kind": kinds.CONFIG_MAP.kind,
        "metadata": {"name": name},
        "data": data,
    }


def _selector(job: Job) -> dict[str, str]:
    return {
        names.JOB_NAME: job.metadata.name,
        names.JOB_NAMESPACE: job.metadata.namespace,
    }


def _service(request: Request) -> Object:
    job = request.job
    spec: Object = {"clusterIP": "None", "selector": _selector(job)}
    if request.switch("publish-not-ready-addresses"):
        spec["publishNotReadyAddresses"] = True
    metadata = _metadata(job, names.SERVICE_LABELS, names.SERVICE_ANNOTATIONS)
    return {
        "apiVersion": kinds.SERVICE.api_version,
        "kind": kinds.SERVICE.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _network_policy(request: Request) -> Object:
    job = request.job
    own_pods = {"podSelector": {"matchLabels": _selector(job)}}
    others = options.peers(job, names.NETWORK_POLICY_SOURCES)
    return {
        "apiVersion": kinds.NETWORK_POLICY.api_version,
        "kind": kinds.NETWORK_POLICY.kind,
        "metadata": _metadata(job, names.NETWORK_POLICY_LABELS, names.NETWORK_POLICY_ANNOTATIONS),
        "spec": {
            "podSelector": own_pods["podSelector"],
            "ingress": [{"from": [own_pods, *others]}],
            "policyTypes": ["Ingress"],
        },
    }


def _metadata(job: Job, labels_option: str, annotations_option: str) -> Object:
    metadata: Object = {"name": job.metadata.name}
    if labels := options.text_map(job, labels_option):
        metadata["labels"] = labels
    if annotations := options.text_map(job, annotations_option):
        metadata["annotations"] = annotations
    return metadata


def _pods(request: Request) -> AddToPod:
    job = request.job
    layout = layout_of(request.hosts)
    volume_name = names.host_config_map_name(job.metadata.name)
    volume = _volume(request, layout)
    env = _host_entries(request, layout) if request.switch("inject-hosts-env") else []
    shows_current_host = options.switch(job, names.INJECT_CURRENT_HOST)

    def add(pod: PodDraft) -> None:
        pod.set_default("hostname", pod.name)
        pod.set_default("subdomain", job.metadata.name)
        pod.add_volume(volume)
        entries = env
        if shows_current_host and (hosts := request.hosts.find(pod.task)):
            entries = [*env, {"name": CURRENT_HOST, "value": hosts.address(pod.index)}]
        for container in pod.all_containers():
            container.add_env(entries)
            container.add_mount(volume_name, MOUNT_PATH)

    return add


def _host_entries(request: Request, layout: HostListLayout) -> list[Object]:
    config_map = names.host_config_map_name(request.job.metadata.name)
    keys = []
    for task in request.hosts:
        if task.task in layout.in_environment:
            keys.append(names.hosts_variable(task.task))
        keys.append(names.count_variable(task.task))
    return [
        {"name": key, "valueFrom": {"configMapKeyRef": {"name": config_map, "key": key}}}
        for key in keys
    ]


def _volume(request: Request, layout: HostListLayout) -> Object:
    job = request.job.metadata.name
    name = names.host_config_map_name(job)
    if not layout.projected:
        return {"name": name, "configMap": {"name": name}}
    own = [names.task_host_config_map_name(job, task.task) for task in request.hosts]
    sources: list[Object] = [{"configMap": {"name": name}}]
    sources += [{"configMap": {"name": one, "optional": True}} for one in own]
    return {"name": name, "projected": {"sources": sources}}


def _problems(request: Request) -> Iterator[Problem]:
    yield from _name_problems(request.job)
    volume_name = names.host_config_map_name(request.job.metadata.name)
    yield from mount_problems(request, volume_name, MOUNT_PATH, "the host lists")
    for position, task in enumerate(request.hosts):
        yield from _size_problems(task, position, request)
        yield from _template_problems(request.job, position)
    yield from _option_problems(request)


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone may hold anything, and means nothing on another machine


def _name_problems(job: Job) -> Iterator[Problem]:
    name = job.metadata.name
    path = ("metadata", "name")
    if not name:
        return
    volume = names.host_config_map_name(name)
    if wrong := dns_1123_label(name):
        yield Problem(f"the plugin svc makes a Service named {name}, whose name must {wrong}", path)
    elif wrong := dns_1123_label(volume):
        hint = f"shorten the Job's name to {63 - len('-svc')} characters"
        yield Problem(
            f"the plugin svc makes a volume named {volume}, whose name must {wrong}", path, hint
        )
    elif wrong := dns_1035_label(name):
        yield Problem(
            f"the plugin svc makes a Service named {name}; Kubernetes before 1.34 wants its name "
            f"to {wrong}",
            path,
            warning=True,
        )


def _size_problems(task: TaskHosts, position: int, request: Request) -> Iterator[Problem]:
    path = ("spec", "tasks", position, "replicas")
    size = task.list_bytes
    if size > room_of(task.task):
        fitting = task.hosts_within(room_of(task.task))
        yield Problem(
            f'the host list of task "{task.task}" would have {size} bytes, but a ConfigMap holds '
            f"{MOST_LIST_BYTES}",
            path,
            f"with names of this length {fitting} replicas fit",
        )
    elif request.switch("inject-hosts-env") and env_bytes(task) > MOST_ENV_BYTES:
        variable = names.hosts_variable(task.task)
        yield Problem(
            f"containers do not get {variable}: it would have {env_bytes(task)} bytes, and Linux "
            f"passes at most {MOST_ENV_BYTES} in one variable",
            path,
            f"read the hosts from {MOUNT_PATH}/{names.host_file_key(task.task)}",
            warning=True,
        )


def _template_problems(job: Job, position: int) -> Iterator[Problem]:
    task = job.spec.tasks[position]
    spec = pod_spec(task)
    path = ("spec", "tasks", position, "template", "spec")
    if spec.get("hostname") and task.replicas > 1:
        yield Problem(
            f'all {task.replicas} pods of task "{task.name}" get the same host name, and host '
            "lists show it once",
            (*path, "hostname"),
            "leave hostname out, then each pod is called as its name says",
            warning=True,
        )
    subdomain = spec.get("subdomain")
    if subdomain and subdomain != job.metadata.name:
        yield Problem(
            f"host names end in .{subdomain}, which resolves only if there is a headless Service "
            f"named {subdomain}",
            (*path, "subdomain"),
            "leave subdomain out to use the job's own Service",
            warning=True,
        )


def _option_problems(request: Request) -> Iterator[Problem]:
    job = request.job
    yield from options.switch_problems(job, names.INJECT_CURRENT_HOST)
    for key in (names.SERVICE_LABELS, names.NETWORK_POLICY_LABELS):
        yield from options.label_problems(job, key)
    for key in (names.SERVICE_ANNOTATIONS, names.NETWORK_POLICY_ANNOTATIONS):
        yield from options.annotation_problems(job, key)
    yield from options.peer_problems(job, names.NETWORK_POLICY_SOURCES)
    if problem := options.map_problem(job, names.HOST_ADDRESSES):
        yield problem
    for pod, address in options.text_map(job, names.HOST_ADDRESSES).items():
        if not _is_ip_address(address) and (wrong := dns_1123_subdomain(address.lower())):
            yield Problem(
                f'{names.HOST_ADDRESSES}: "{address}" is no IP address, and so must {wrong}',
                options.option_path(names.HOST_ADDRESSES),
            )
        task, index = _host_of(pod)
        hosts = request.hosts.find(task)
        if not hosts or not 0 <= index < hosts.count:
            yield Problem(
                f'{names.HOST_ADDRESSES}: the Job has no host "{pod}"',
                options.option_path(names.HOST_ADDRESSES),
                "name hosts by task and index, such as worker-0",
                warning=True,
            )


PLUGIN = Plugin(
    name="svc",
    help="Gives pods names that the other pods of the Job find, lists of all of these names, and "
    "a network policy that keeps others out.",
    arguments=(
        Argument(
            "publish-not-ready-addresses", False, "let names resolve before a pod is ready too"
        ),
        Argument("disable-network-policy", False, "make no NetworkPolicy: let everybody in"),
        Argument("inject-hosts-env", True, "give containers VC_<TASK>_HOSTS and VC_<TASK>_NUM too"),
    ),
    kinds=(kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY),
    addresses=_addresses,
    problems=_problems,
    objects=_objects,
    pods=_pods,
)
