"""Every label, annotation and derived name in one place.

Sources: spec job-api.md sections 5 and 6, plugins.md section 3. Our own annotations are
listed in ``OUR_ANNOTATIONS``; an annotation under ``vcjob.dev/`` that is not there draws a
warning, because a typing error would otherwise be ignored silently.
"""

import hashlib
import uuid

import msgspec

# Labels and annotations that Volcano defines.
VOLCANO_PREFIX = "volcano.sh/"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
QUEUE_NAME = "volcano.sh/queue-name"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
TEMPLATE_UID = "volcano.sh/template-uid"
NUMA_TOPOLOGY_POLICY = "volcano.sh/numa-topology-policy"
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"
JOB_FORWARDING = "volcano.sh/job-forwarding"
PARTITION_ID = "volcano.sh/partition-id"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
GROUP_NAME = "scheduling.k8s.io/group-name"

# On the objects that support a job (ConfigMap, Service, …), so that caches watch only those.
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY_VALUE = "vcjob"

# Where a Job's state that must outlive the controller is kept (status.controlledResources).
STATE_KEY = "vcjob.dev/state"

OUR_PREFIX = "vcjob.dev/"


class OurAnnotation(msgspec.Struct, frozen=True):
    """One annotation of ours: its key, the room that reads it, its meaning, since which version.

    ``widens_rights``: who may only make Jobs has others reached by it, or other controllers act. On
    a cluster it works only where the administrator allows it.
    """

    key: str
    owner: str
    meaning: str
    since: str
    widens_rights: bool = False


SUSPEND = "vcjob.dev/suspend"
COPY_LABELS = "vcjob.dev/copy-labels"
INJECT_CURRENT_HOST = "vcjob.dev/inject-current-host"
HOST_ADDRESSES = "vcjob.dev/host-addresses"
SERVICE_LABELS = "vcjob.dev/service-labels"
SERVICE_ANNOTATIONS = "vcjob.dev/service-annotations"
NETWORK_POLICY_LABELS = "vcjob.dev/network-policy-labels"
NETWORK_POLICY_ANNOTATIONS = "vcjob.dev/network-policy-annotations"
NETWORK_POLICY_SOURCES = "vcjob.dev/network-policy-sources"
SSH_SECRET = "vcjob.dev/ssh-secret"
UNCOUNTED_EVENTS = "vcjob.dev/uncounted-events"
MINIMUM_FIRST = "vcjob.dev/minimum-first"

OUR_ANNOTATIONS: tuple[OurAnnotation, ...] = (
    OurAnnotation(SUSPEND, "core", '"true" suspends the Job like AbortJob', "0.1"),
    OurAnnotation(
        UNCOUNTED_EVENTS,
        "core",
        "events whose restarts use up no retry of maxRetry, with commas, such as PodEvicted",
        "0.1",
    ),
    OurAnnotation(
        MINIMUM_FIRST,
        "core",
        '"true" makes pods beyond the minimum only once the minimum runs',
        "0.1",
    ),
    OurAnnotation(
        COPY_LABELS, "core", "keys of the Job's labels that its pods get too, with commas", "0.1"
    ),
    OurAnnotation(
        INJECT_CURRENT_HOST,
        "svc",
        '"true" gives every container VC_CURRENT_HOST, its own name in the host lists',
        "0.1",
    ),
    OurAnnotation(
        HOST_ADDRESSES,
        "svc",
        "addresses that host lists show instead of names: a JSON object such as "
        '{"worker-0": "10.1.0.5"}, by task and index',
        "0.1",
    ),
    OurAnnotation(
        SERVICE_LABELS,
        "svc",
        "labels for the Service: a JSON object",
        "0.1",
        widens_rights=True,
    ),
    OurAnnotation(
        SERVICE_ANNOTATIONS,
        "svc",
        "annotations for the Service: a JSON object",
        "0.1",
        widens_rights=True,
    ),
    OurAnnotation(
        NETWORK_POLICY_LABELS,
        "svc",
        "labels for the NetworkPolicy: a JSON object",
        "0.1",
        widens_rights=True,
    ),
    OurAnnotation(
        NETWORK_POLICY_ANNOTATIONS,
        "svc",
        "annotations for the NetworkPolicy: a JSON object",
        "0.1",
        widens_rights=True,
    ),
    OurAnnotation(
        NETWORK_POLICY_SOURCES,
        "svc",
        "who else may reach the pods: a JSON list of NetworkPolicy peers such as "
        '[{"namespaceSelector": {}}]',
        "0.1",
        widens_rights=True,
    ),
    OurAnnotation(
        SSH_SECRET,
        "ssh",
        "a Secret whose id_rsa and id_rsa.pub are the Job's keys, instead of keys made for it",
        "0.1",
    ),
)

WIDENING: tuple[str, ...] = tuple(one.key for one in OUR_ANNOTATIONS if one.widens_rights)
"""Keys of the annotations that work on a cluster only where its administrator allows them."""


def listed(text: str) -> list[str]:
    """The names in the value of an annotation that lists several with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def pod_name(job: str, task: str, index: int) -> str:
    """Name of the pod of a task's replica: ``<job>-<task>-<index>``."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: str, uid: str) -> str:
    """Name of a Job's PodGroup: ``<job>-<uid>``."""
    return f"{job}-{uid}"


def host_config_map_name(job: str) -> str:
    """Name of the svc plugin's ConfigMap: ``<job>-svc``."""
    return f"{job}-svc"


def task_host_config_map_name(job: str, task: str) -> str:
    """Name of the ConfigMap for one task's host list, where one for all would be too big."""
    return f"{job}-svc-{task}"


def ssh_secret_name(job: str) -> str:
    """Name of the ssh plugin's Secret, and of the volume made from it: ``<job>-ssh``."""
    return f"{job}-ssh"


def plugin_mark(plugin: str) -> str:
    """Key in ``status.controlledResources`` that tells Volcano's tools that a plugin has run."""
    return f"plugin-{plugin}"


def claim_mark(claim: str) -> str:
    """Key in ``status.controlledResources`` for a claim that the Job mounts."""
    return f"volume-pvc-{claim}"


def host_file_key(task: str) -> str:
    """Key (and file name) of a task's host list: ``<task>.host``, with ``-`` as ``_``."""
    return f"{task.replace('-', '_')}.host"


def hosts_variable(task: str) -> str:
    """Environment name of a task's comma-joined host list: ``VC_<TASK>_HOSTS``."""
    return f"VC_{task.replace('-', '_').upper()}_HOSTS"


def count_variable(task: str) -> str:
    """Environment name of the number of a task's hosts: ``VC_<TASK>_NUM``."""
    return f"VC_{task.replace('-', '_').upper()}_NUM"


def claim_name(job: str, uid: str, index: int) -> str:
    """Name of the claim made for ``volumes[index]``: a hash of UID and index, so always the same.

    Volcano draws the suffix at random and loses it when an apply erases it (user case P94).
    """
    digest = hashlib.sha256(f"{uid}/{index}".encode()).hexdigest()
    return f"{job}-pvc-{digest[:12]}"


def claim_volume_name(job: str, claim: str) -> str:
    """Name of the pod volume for a claim: ``<job>-<12 characters>``, always the same.

    Volcano draws the suffix anew for every pod.
    """
    return f"{job}-{hashlib.sha256(claim.encode()).hexdigest()[:12]}"


def derived_uid(namespace: str, name: str) -> str:
    """A stable UID for a Job that no server has stored, from its namespace and name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"vcjob.dev/{namespace}/{name}"))
