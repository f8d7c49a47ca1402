"""Typed, read-only views of our kinds over the plain JSON objects.

An object is viewed with ``Job.of(obj)``; the view keeps no link to unknown fields, so whatever
must be passed on (pod templates, claims) is kept as the JSON it is. Views are nil-safe: a Job that
no webhook has defaulted can be viewed too (user case P30).
"""

from typing import Any, Self

import msgspec

from vcjob.api.errors import VcjobError

Object = dict[str, Any]
"""One API object (or a part of one) in the API's own JSON shape."""

Key = tuple[str, str]
"""Namespace ("" for kinds without) and name of an object."""


def key_of(obj: Object) -> Key:
    """The key of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def all_containers(pod_spec: Object) -> tuple[Object, ...]:
    """The containers of a pod in the order of their start: those of init first."""
    return (*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ()))


class MalformedObject(VcjobError):
    """An object whose fields have types that the schema forbids, so that no view is possible."""


class _View(msgspec.Struct, frozen=True, rename="camel"):
    @classmethod
    def of(cls, obj: Object) -> Self:
        """View a JSON object; raises MalformedObject where a field has the wrong type."""
        try:
            return msgspec.convert(_without_nulls(obj), cls)
        except msgspec.ValidationError as error:
            raise MalformedObject(str(error)) from error


def _without_nulls(value: Any) -> Any:
    """JSON null means "not given" in the Kubernetes API."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


class OwnerReference(_View, frozen=True, rename="camel"):
    """metadata.ownerReferences[]."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Metadata(_View, frozen=True, rename="camel"):
    """metadata, as far as decisions read it."""

    name: str = ""
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class NetworkTopology(_View, frozen=True, rename="camel"):
    """networkTopology of a job or partition policy."""

    mode: str = "hard"
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class Policy(_View, frozen=True, rename="camel"):
    """One lifecycle policy (job-api.md section 3.2)."""

    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout: str = ""


class DependsOn(_View, frozen=True, rename="camel"):
    """Start ordering of a task."""

    name: tuple[str, ...] = ()
    iteration: str = ""


class PartitionPolicy(_View, frozen=True, rename="camel"):
    """How a task's pods are grouped."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int = 0
    network_topology: NetworkTopology | None = None


class Task(_View, frozen=True, rename="camel"):
    """One task: ``replicas`` pods of one template. ``template`` stays plain JSON."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: Object = {}
    policies: tuple[Policy, ...] = ()
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobVolume(_View, frozen=True, rename="camel"):
    """A claim mounted into every container of every pod."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: Object | None = None


class JobSpec(_View, frozen=True, rename="camel"):
    """spec of a Job (job-api.md section 3)."""

    scheduler_name: str = ""
    min_available: int = 0
    volumes: tuple[JobVolume, ...] = ()
    tasks: tuple[Task, ...] = ()
    policies: tuple[Policy, ...] = ()
    plugins: dict[str, tuple[str, ...]] = {}
    queue: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopology | None = None


class JobState(_View, frozen=True, rename="camel"):
    """status.state."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class JobStatus(_View, frozen=True, rename="camel"):
    """status of a Job (job-api.md section 4)."""

    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, Object] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str = ""
    controlled_resources: dict[str, str] = {}
    conditions: tuple[Object, ...] = ()


class Job(_View, frozen=True, rename="camel"):
    """A Volcano Job."""

    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
