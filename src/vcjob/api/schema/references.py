"""References to other objects and to the pod itself, shared by containers and volumes.

These are the fields of core/v1 in Kubernetes 1.34 (API reference), with the choices and bounds that
its validation asks for.
"""

from vcjob.api.schema.types import (
    BOOLEAN,
    QUANTITY,
    SUBDOMAIN,
    TEXT,
    Text,
    choice,
    record,
    required,
)

LOCAL_OBJECT_REFERENCE = record(
    "LocalObjectReference",
    {
        "name": SUBDOMAIN,
    },
)

CONFIG_MAP_KEY_SELECTOR = record(
    "ConfigMapKeySelector",
    {
        "key": required(Text("config-map-key", min_length=1)),
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

SECRET_KEY_SELECTOR = record(
    "SecretKeySelector",
    {
        "key": required(Text("config-map-key", min_length=1)),
        "name": SUBDOMAIN,
        "optional": BOOLEAN,
    },
)

OBJECT_FIELD_SELECTOR = record(
    "ObjectFieldSelector",
    {
        "apiVersion": choice("v1"),
        "fieldPath": required(Text(min_length=1)),
    },
)

RESOURCE_FIELD_SELECTOR = record(
    "ResourceFieldSelector",
    {
        "containerName": TEXT,
        "divisor": QUANTITY,
        "resource": required(Text(min_length=1)),
    },
)
