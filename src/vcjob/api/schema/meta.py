"""Metadata of objects and of pod templates.

These are the fields of meta/v1 in Kubernetes 1.34 (API reference).
"""

from vcjob.api.schema.types import (
    ANNOTATIONS,
    ANYTHING,
    BOOLEAN,
    LABELS,
    LONG,
    SUBDOMAIN,
    TEXT,
    TIME,
    ListOf,
    MapOf,
    Text,
    field,
    record,
    required,
)

_SOME_TEXT = Text(min_length=1)
_FINALIZER = Text("qualified-name", min_length=1)

OWNER_REFERENCE = record(
    "OwnerReference",
    {
        "apiVersion": required(_SOME_TEXT),
        "blockOwnerDeletion": BOOLEAN,
        "controller": BOOLEAN,
        "kind": required(_SOME_TEXT),
        "name": required(_SOME_TEXT),
        "uid": required(_SOME_TEXT),
    },
)

_SERVER_FIELDS = {
    "creationTimestamp": field(TIME, "When the server stored the object. Set by the server."),
    "deletionGracePeriodSeconds": field(LONG, "Set by the server."),
    "deletionTimestamp": field(TIME, "When deletion was asked for. Set by the server."),
    "generation": field(LONG, "Counts the changes of spec. Set by the server."),
    "managedFields": field(ListOf(MapOf(ANYTHING)), "Who set which field. Set by the server."),
    "resourceVersion": field(TEXT, "Changes with every change of the object. Set by the server."),
    "selfLink": field(TEXT, "No longer used."),
    "uid": field(TEXT, "Distinguishes the object from namesakes. Set by the server."),
}

OBJECT_META = record(
    "ObjectMeta",
    {
        "name": field(SUBDOMAIN, "Name, unique in the namespace among objects of one kind."),
        "generateName": field(TEXT, "Start of the name; the rest is chosen when it is created."),
        "namespace": field(Text("dns-1123-label"), "Namespace of the object."),
        "labels": field(LABELS, "Keys and values to select the object by."),
        "annotations": field(ANNOTATIONS, "Keys and texts for tools."),
        "finalizers": field(ListOf(_FINALIZER), "What must be done before the object may vanish."),
        "ownerReferences": field(ListOf(OWNER_REFERENCE), "With these it is garbage collected."),
        **_SERVER_FIELDS,
    },
)

# A template's metadata keeps these five; the API server prunes others (job-api.md section 2).
TEMPLATE_META = record(
    "TemplateMeta",
    {
        "annotations": field(ANNOTATIONS, "Annotations of the pods."),
        "finalizers": field(ListOf(TEXT), "Finalizers of the pods."),
        "labels": field(LABELS, "Labels of the pods."),
        "name": field(TEXT, "Replaced by the pod's own name."),
        "namespace": field(TEXT, "Replaced by the Job's namespace."),
        # Written by every typed client, always null.
        "creationTimestamp": field(TIME, "Has no meaning in a template."),
    },
)
