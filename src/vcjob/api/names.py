"""Every label, annotation and derived name in one place.

Sources: spec job-api.md sections 5 and 6, plugins.md section 3. Our own annotations are
listed in ``OUR_ANNOTATIONS``; an annotation under ``vcjob.dev/`` that is not there draws a
warning, because a typing error would otherwise be ignored silently.
"""

import hashlib
import uuid

import msgspec

# Labels and annotations that Volcano defines.
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
JOB_TYPE = "volcano.sh/job-type"
GROUP_NAME = "scheduling.k8s.io/group-name"

# On the objects that support a job (ConfigMap, Service, …), so that caches watch only those.
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY_VALUE = "vcjob"

# Where a Job's state that must outlive the controller is kept (status.controlledResources).
STATE_KEY = "vcjob.dev/state"

OUR_PREFIX = "vcjob.dev/"


class OurAnnotation(msgspec.Struct, frozen=True):
    """One annotation of ours: its key, the room that reads it, its meaning, since which version."""

    key: str
    owner: str
    meaning: str
    since: str


SUSPEND = "vcjob.dev/suspend"

OUR_ANNOTATIONS: tuple[OurAnnotation, ...] = (
    OurAnnotation(SUSPEND, "core", '"true" suspends the Job like AbortJob', "0.1"),
)


def pod_name(job: str, task: str, index: int) -> str:
    """Name of the pod of a task's replica: ``<job>-<task>-<index>``."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: str, uid: str) -> str:
    """Name of a Job's PodGroup: ``<job>-<uid>``."""
    return f"{job}-{uid}"


def host_config_map_name(job: str) -> str:
    """Name of the svc plugin's ConfigMap: ``<job>-svc``."""
    return f"{job}-svc"


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


def derived_uid(namespace: str, name: str) -> str:
    """A stable UID for a Job that no server has stored, from its namespace and name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"vcjob.dev/{namespace}/{name}"))
