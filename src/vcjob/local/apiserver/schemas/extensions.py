"""What adds to the API: CustomResourceDefinitions, webhooks. Source: Kubernetes API reference."""

from collections.abc import Mapping

from vcjob.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from vcjob.api.schema.scheduling import LABEL_SELECTOR
from vcjob.api.schema.types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    SUBDOMAIN,
    TEXT,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    Type,
    choice,
    field,
    record,
    required,
)
from vcjob.local.apiserver.schemas.parts import kept
from vcjob.local.apiserver.structural_types import JSON_SCHEMA

_VERSION = record(
    "CustomResourceDefinitionVersion",
    {
        "name": required(Text("dns-1123-label", min_length=1), "Name of the version."),
        "served": required(BOOLEAN, "Whether clients can use it."),
        "storage": required(BOOLEAN, "Whether objects are kept in it."),
        "additionalPrinterColumns": ListOf(
            record(
                "CustomResourceColumnDefinition",
                {
                    "name": required(TEXT),
                    "type": required(choice("boolean", "date", "integer", "number", "string")),
                    "jsonPath": required(Text(min_length=1)),
                    "description": TEXT,
                    "format": TEXT,
                    "priority": INTEGER,
                },
            )
        ),
        "deprecated": BOOLEAN,
        "deprecationWarning": TEXT,
        "schema": record("CustomResourceValidation", {"openAPIV3Schema": JSON_SCHEMA}),
        "selectableFields": ListOf(
            record("SelectableField", {"jsonPath": required(Text(min_length=1))})
        ),
        "subresources": MapOf(MapOf(ANYTHING)),
    },
)

_WEBHOOK_FIELDS: dict[str, Type | Field] = {
    "name": required(TEXT, "Name of the webhook, a full domain name."),
    "admissionReviewVersions": required(ListOf(TEXT), "Versions of reviews that it understands."),
    "clientConfig": required(
        record(
            "WebhookClientConfig",
            {
                "caBundle": field(TEXT, "Who signed its certificate: base64 of PEM."),
                "service": record(
                    "ServiceReference",
                    {
                        "name": required(TEXT),
                        "namespace": required(TEXT),
                        "path": TEXT,
                        "port": INTEGER,
                    },
                ),
                "url": TEXT,
            },
        ),
        "Where it is.",
    ),
    "failurePolicy": TEXT,
    "matchConditions": ListOf(
        record("MatchCondition", {"name": required(TEXT), "expression": required(TEXT)}),
        keys=("name",),
    ),
    "matchPolicy": TEXT,
    "namespaceSelector": LABEL_SELECTOR,
    "objectSelector": LABEL_SELECTOR,
    "rules": ListOf(
        record(
            "RuleWithOperations",
            {
                "apiGroups": ListOf(TEXT),
                "apiVersions": ListOf(TEXT),
                "operations": ListOf(TEXT),
                "resources": ListOf(TEXT),
                "scope": TEXT,
            },
        )
    ),
    "sideEffects": required(TEXT, "None or NoneOnDryRun."),
    "timeoutSeconds": INTEGER,
}

OF_KINDS: Mapping[Kind, Record] = {
    CUSTOM_RESOURCE_DEFINITION: kept(
        "CustomResourceDefinition",
        {
            "spec": required(
                record(
                    "CustomResourceDefinitionSpec",
                    {
                        "group": required(SUBDOMAIN, "API group of the kind."),
                        "names": required(
                            record(
                                "CustomResourceDefinitionNames",
                                {
                                    "categories": ListOf(TEXT),
                                    "kind": required(Text(min_length=1)),
                                    "listKind": TEXT,
                                    "plural": required(Text("dns-1123-label", min_length=1)),
                                    "shortNames": ListOf(TEXT),
                                    "singular": TEXT,
                                },
                            ),
                            "Names of the kind.",
                        ),
                        "scope": required(
                            choice("Namespaced", "Cluster"), "Namespaced or Cluster."
                        ),
                        "conversion": ANYTHING,
                        "preserveUnknownFields": BOOLEAN,
                        "versions": required(
                            ListOf(_VERSION, min_items=1), "Versions of the kind."
                        ),
                    },
                ),
                "What the kind is.",
            ),
            "status": ANYTHING,
        },
        "A kind of object that somebody adds to the API.",
    ),
    MUTATING_WEBHOOK_CONFIGURATION: kept(
        "MutatingWebhookConfiguration",
        {
            "webhooks": ListOf(
                record("MutatingWebhook", {**_WEBHOOK_FIELDS, "reinvocationPolicy": TEXT}),
                keys=("name",),
            )
        },
        "Who may change objects before they are stored; kept, and not called.",
    ),
    VALIDATING_WEBHOOK_CONFIGURATION: kept(
        "ValidatingWebhookConfiguration",
        {"webhooks": ListOf(record("ValidatingWebhook", _WEBHOOK_FIELDS), keys=("name",))},
        "Who may refuse objects before they are stored; kept, and not called.",
    ),
}
"""What adds to the API."""
