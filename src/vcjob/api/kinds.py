"""The kinds of object that vcjob handles, as the Kubernetes API names them."""

import msgspec


class Kind(msgspec.Struct, frozen=True, order=True):
    """One kind of object: API group (empty for core), version, kind and plural name."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apiVersion`` as objects carry it: ``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return self.kind


JOB = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs")
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands")
POD_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")
QUEUE = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False)

POD = Kind("", "v1", "Pod", "pods")
SERVICE = Kind("", "v1", "Service", "services")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
SECRET = Kind("", "v1", "Secret", "secrets")
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENT = Kind("", "v1", "Event", "events")
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)

ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
MUTATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATION = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)

# Kinds of manifests that Jobs come with; the ones above are an engine's or an operator's own.
ALL: tuple[Kind, ...] = (
    JOB, COMMAND, POD_GROUP, QUEUE, POD, SERVICE, CONFIG_MAP, SECRET, PERSISTENT_VOLUME_CLAIM,
    EVENT, NAMESPACE, NODE, NETWORK_POLICY, PRIORITY_CLASS,
)  # fmt: skip

SUPPORTING: tuple[Kind, ...] = (CONFIG_MAP, SECRET, SERVICE, NETWORK_POLICY)
"""What plugins can make for a Job, and the controller keeps up."""

_BY_API_VERSION_AND_KIND = {(kind.api_version, kind.kind): kind for kind in ALL}


def find_kind(api_version: str, kind: str) -> Kind | None:
    """The kind that ``apiVersion`` and ``kind`` of an object name, or None if it is not ours."""
    return _BY_API_VERSION_AND_KIND.get((api_version, kind))
