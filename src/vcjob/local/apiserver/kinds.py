"""Kinds that only the API server knows: it keeps their objects, nothing else of vcjob uses them."""

from vcjob.api.kinds import Kind

ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
EVENT_OF_EVENTS = Kind("events.k8s.io", "v1", "Event", "events")
"""An Event in its newer shape; stored as core ``EVENT`` (``events.py``)."""
