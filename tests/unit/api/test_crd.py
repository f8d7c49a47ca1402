import re
from collections.abc import Iterator
from typing import Any

import pytest

from vcjob.api.crd import INSTALLED, crd
from vcjob.api.kinds import COMMAND, JOB, POD_GROUP, QUEUE, Kind


def schema_of(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def at(kind: Kind, *path: str) -> dict[str, Any]:
    schema = schema_of(kind)
    for part in path:
        schema = schema["items"] if part == "[]" else schema["properties"][part]
    return schema


def all_schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from all_schemas(inner)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from all_schemas(schema[key])


@pytest.mark.parametrize(
    ("kind", "name", "scope", "short_names", "has_status"),
    [
        (JOB, "jobs.batch.volcano.sh", "Namespaced", ["vcjob", "vj"], True),
        (POD_GROUP, "podgroups.scheduling.volcano.sh", "Namespaced",
         ["pg", "podgroup-v1beta1"], False),
        (QUEUE, "queues.scheduling.volcano.sh", "Cluster", ["q", "queue-v1beta1"], True),
        (COMMAND, "commands.bus.volcano.sh", "Namespaced", None, False),
    ],
)  # fmt: skip
def test_names_scope_and_status(
    kind: Kind, name: str, scope: str, short_names: list[str] | None, has_status: bool
) -> None:
    made = crd(kind)
    assert made["metadata"]["name"] == name
    assert made["spec"]["scope"] == scope
    assert made["spec"]["names"].get("shortNames") == short_names
    assert ("subresources" in made["spec"]["versions"][0]) == has_status


def test_columns_of_jobs() -> None:
    columns = crd(JOB)["spec"]["versions"][0]["additionalPrinterColumns"]
    names = [column["name"] for column in columns]
    assert names == ["STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"]
    assert [column.get("priority") for column in columns] == [None, None, None, None, 1]


def test_rules_of_fields() -> None:
    assert at(JOB, "spec", "maxRetry")["default"] == 3
    assert at(JOB, "spec", "minSuccess")["minimum"] == 1
    assert at(JOB, "spec", "tasks")["minItems"] == 1
    assert at(JOB, "spec", "queue")["maxLength"] == 253
    assert at(JOB, "spec", "networkTopology", "mode")["enum"] == ["hard", "soft"]
    assert re.match(at(JOB, "spec", "tasks", "[]", "name")["pattern"], "a-1")
    assert schema_of(JOB)["required"] == ["spec"]
    assert "required" not in schema_of(COMMAND)


def test_templates_keep_what_the_schema_does_not_know_at_every_level() -> None:
    template = at(JOB, "spec", "tasks", "[]", "template")
    records = [schema for schema in all_schemas(template) if "properties" in schema]
    assert len(records) > 100
    assert all(schema.get("x-kubernetes-preserve-unknown-fields") for schema in records)
    assert not any("enum" in schema or "pattern" in schema for schema in all_schemas(template))
    assert "x-kubernetes-preserve-unknown-fields" not in at(JOB, "spec")
    metadata = at(JOB, "spec", "tasks", "[]", "template", "metadata")
    kept = {"annotations", "finalizers", "labels", "name", "namespace"}
    assert kept <= set(metadata["properties"])


@pytest.mark.parametrize("kind", INSTALLED)
def test_schemas_are_structural(kind: Kind) -> None:
    """Every level has a type, or says why not; keys of list maps are required or defaulted."""
    for schema in all_schemas(schema_of(kind)):
        free = schema.get("x-kubernetes-int-or-string") or schema.get(
            "x-kubernetes-preserve-unknown-fields"
        )
        assert schema.get("type") or free
        for key in schema.get("x-kubernetes-list-map-keys", []):
            item = schema["items"]
            assert key in item.get("required", []) or "default" in item["properties"][key]
