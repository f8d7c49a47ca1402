"""What is served is told in every form that clients look for it."""

import asyncio

import pytest
from served import served

from vcjob.api.kinds import COMMAND, JOB, POD_GROUP, QUEUE
from vcjob.api.schema.types import ListOf, MapOf, Record
from vcjob.local.apiserver.openapi import version_2
from vcjob.local.apiserver.resources import BUILT_IN
from vcjob.local.apiserver.schemas.kinds import OF_KINDS

ALL_AT_ONCE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Kubernetes' own, which it documents itself.
_NOT_OURS = ("PodTemplateSpec", "PersistentVolumeClaimSpec", "LabelSelector", "ObjectMeta")


def answers(*paths, **headers):
    async def run():
        async with served() as ask:
            return [(await ask("GET", path, headers=headers)).body for path in paths]

    return asyncio.run(run())


def test_every_resource_is_found_in_the_list_of_its_group_and_all_at_once():
    paths = {r.kind.api_version: r for r in BUILT_IN}
    where = [f"/apis/{one}" if "/" in one else f"/api/{one}" for one in paths]
    listed = {
        (body["groupVersion"], entry["name"])
        for body in answers(*where)
        for entry in body["resources"]
    }
    aggregated = {
        (f"{name}/{version['version']}".lstrip("/"), entry["resource"])
        for body in answers("/api", "/apis", Accept=ALL_AT_ONCE)
        for group in body["items"]
        for name in [group["metadata"].get("name", "")]
        for version in group["versions"]
        for entry in version["resources"]
    }
    expected = {(r.kind.api_version, r.kind.plural) for r in BUILT_IN}

    assert expected <= listed
    assert aggregated == expected


def test_short_names_and_subresources_of_jobs():
    [body] = answers("/apis/batch.volcano.sh/v1alpha1")
    entries = {entry["name"]: entry for entry in body["resources"]}

    assert entries["jobs"]["shortNames"] == ["vcjob", "vj"]
    assert set(entries["jobs/status"]["verbs"]) == {"get", "patch", "update"}
    assert entries["jobs/scale"]["kind"] == "Scale"


def test_no_name_stands_for_two_kinds_of_a_group():
    names = [
        (resource.kind.group, name)
        for resource in BUILT_IN
        for name in (resource.kind.plural, resource.singular, *resource.short_names)
    ]

    assert len(names) == len(set(names))


def references(value):
    if isinstance(value, dict):
        if isinstance(found := value.get("$ref"), str):
            yield found
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


@pytest.mark.parametrize("start", ["v2", "v3"])
def test_openapi_refers_only_to_what_it_holds(start):
    if start == "v2":
        documents = answers("/openapi/v2")
    else:
        [index] = answers("/openapi/v3")
        documents = answers(*(one["serverRelativeURL"] for one in index["paths"].values()))
        assert len(documents) == len({resource.kind.api_version for resource in BUILT_IN})
    for document in documents:
        schemas = document.get("definitions") or document["components"]["schemas"]
        assert {one.rpartition("/")[2] for one in references(document)} <= set(schemas)
        operations = [
            operation["operationId"]
            for path in document["paths"].values()
            for verb, operation in path.items()
            if verb != "parameters"
        ]
        assert len(operations) == len(set(operations))


def test_openapi_has_the_operations_that_discovery_tells():
    paths = version_2(BUILT_IN)["paths"]
    words = {"get": "list", "post": "create", "delete": "deletecollection"}
    for resource in BUILT_IN:
        kind = resource.kind
        start = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
        place = "/namespaces/{namespace}" if kind.namespaced else ""
        operations = paths[f"{start}{place}/{kind.plural}"]
        told = {words[verb] for verb in operations if verb in words}
        assert told == set(resource.verbs) & set(words.values()), kind


def test_kubectl_finds_that_the_server_validates_fields():
    [document] = answers("/openapi/v3/apis/batch.volcano.sh/v1alpha1")
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}"
    patch = document["paths"][path]["patch"]

    assert {"fieldValidation", "dryRun"} <= {one["name"] for one in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Job"


def test_fields_of_a_job_are_explained_with_merge_keys():
    [document] = answers("/openapi/v3/apis/batch.volcano.sh/v1alpha1")
    schemas = document["components"]["schemas"]
    containers = schemas["PodSpec"]["properties"]["containers"]

    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert "env" in schemas["Container"]["properties"]
    assert schemas["JobSpec"]["properties"]["tasks"]["description"]


def test_every_field_of_our_kinds_is_explained():
    def silent(kind, path):
        match kind:
            case ListOf():
                yield from silent(kind.item, path)
            case MapOf():
                yield from silent(kind.value, path)
            case Record() if kind.name not in _NOT_OURS:
                for name, item in kind.fields.items():
                    if not item.doc:
                        yield f"{path}.{name}"
                    yield from silent(item.type, f"{path}.{name}")

    ours = {kind.kind: OF_KINDS[kind] for kind in (JOB, POD_GROUP, QUEUE, COMMAND)}

    assert [path for name, record in ours.items() for path in silent(record, name)] == []
