"""Custom kinds are served by what their definitions say."""

import asyncio

import pytest
from served import served

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/example.com/v1/namespaces/default/boats"
APPLY = "application/apply-patch+yaml"
SCHEMA = {
    "type": "object",
    "description": "It floats.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "description": "How long it is."},
                "colour": {"type": "string", "default": "blue"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "crew": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"afloat": {"type": "boolean"}}},
    },
}


def definition(schema=SCHEMA, **version):
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Boat", "plural": "boats"},
            "scope": "Namespaced",
            "versions": [{**one, **version}],
        },
    }


def boat(**spec):
    return {"metadata": {"name": "b"}, "spec": {"size": 3, **spec}}


def ask_of(scenario, made=None):
    async def run():
        async with served() as ask:
            await ask.made(DEFINITIONS, made or definition())
            return await scenario(ask)

    return asyncio.run(run())


def test_objects_are_completed_and_pruned():
    async def scenario(ask):
        return await ask("POST", BOATS, boat(wings=2, free={"any": 1}))

    made = ask_of(scenario)

    assert made.code == 201
    assert made.body["spec"] == {"size": 3, "colour": "blue", "free": {"any": 1}}
    assert "spec.wings" in made.headers["Warning"]


def test_objects_are_selected_by_the_fields_that_the_definition_names():
    async def scenario(ask):
        await ask.made(BOATS, boat())
        blue = await ask("GET", BOATS, fieldSelector="spec.colour=blue")
        other = await ask("GET", BOATS, fieldSelector="spec.colour!=blue")
        return blue, other, await ask("GET", BOATS, fieldSelector="spec.size=3")

    made = definition(selectableFields=[{"jsonPath": ".spec.colour"}])
    blue, other, unnamed = ask_of(scenario, made)

    assert [len(answer.body["items"]) for answer in (blue, other)] == [1, 0]
    assert unnamed.code == 400


def test_objects_that_do_not_fit_are_refused_with_the_place():
    async def scenario(ask):
        new = await ask("POST", BOATS, {**boat(), "spec": {"colour": 1}})
        await ask.made(BOATS, boat())
        patch = {"Content-Type": "application/merge-patch+json"}
        changed = await ask("PATCH", f"{BOATS}/b", {"spec": {"size": 0}}, headers=patch)
        return new, changed, await ask("POST", f"{BOATS}?fieldValidation=Strict", boat(wings=2))

    new, changed, strict = ask_of(scenario)

    assert (new.code, changed.code, strict.code) == (422, 422, 400)
    assert {cause["field"] for cause in new.body["details"]["causes"]} == {
        "spec.size",
        "spec.colour",
    }
    assert "spec.size" in changed.body["message"]
    assert "spec.wings" in strict.body["message"]


def test_a_kind_without_a_status_subresource_keeps_its_status():
    async def scenario(ask):
        made = await ask("POST", BOATS, {**boat(), "status": {"afloat": True}})
        return made, await ask("GET", f"{BOATS}/b/status")

    made, status = ask_of(scenario)

    assert made.body["status"] == {"afloat": True}
    assert status.code == 404


def test_a_status_subresource_is_written_apart_and_checked():
    async def scenario(ask):
        made = await ask("POST", BOATS, {**boat(), "status": {"afloat": True}})
        patch = {"Content-Type": "application/merge-patch+json"}
        path = f"{BOATS}/b/status"
        wrong = await ask("PATCH", path, {"status": {"afloat": "yes"}}, headers=patch)
        right = await ask("PATCH", path, {"status": {"afloat": True}}, headers=patch)
        return made, wrong, right

    made, wrong, right = ask_of(scenario, definition(subresources={"status": {}}))

    assert "status" not in made.body
    assert (wrong.code, right.code) == (422, 200)
    assert right.body["status"] == {"afloat": True}


def test_a_changed_definition_counts_at_once():
    async def scenario(ask):
        stored = (await ask("GET", f"{DEFINITIONS}/boats.example.com")).body
        stored["spec"]["versions"][0]["schema"] = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
        before = await ask("POST", BOATS, boat(size="big"))
        await ask("PUT", f"{DEFINITIONS}/boats.example.com", stored)
        return before, await ask("POST", BOATS, boat(size="big"))

    before, after = ask_of(scenario)

    assert (before.code, after.code) == (422, 201)


def test_lists_with_keys_are_applied_item_by_item():
    async def scenario(ask):
        for manager, name in (("one", "ann"), ("two", "bob")):
            wish = {"apiVersion": "example.com/v1", "kind": "Boat", **boat(crew=[{"name": name}])}
            path = f"{BOATS}/b?fieldManager={manager}"
            answer = await ask("PATCH", path, wish, headers={"Content-Type": APPLY})
        return answer

    assert ask_of(scenario).body["spec"]["crew"] == [{"name": "ann"}, {"name": "bob"}]


def test_the_hash_of_a_document_changes_with_the_definition():
    async def scenario(ask):
        before = (await ask("GET", "/openapi/v3")).body["paths"]
        path = f"{DEFINITIONS}/boats.example.com"
        versions = definition({"type": "object"})["spec"]["versions"]
        changed = await ask("PATCH", path, {"spec": {"versions": versions}},
                            type="application/merge-patch+json")  # fmt: skip
        assert changed.code == 200
        return before, (await ask("GET", "/openapi/v3")).body["paths"]

    before, after = ask_of(scenario)

    assert [path for path in before if before[path] != after[path]] == ["apis/example.com/v1"]


def test_openapi_has_the_schema_of_the_definition():
    async def scenario(ask):
        return await ask("GET", "/openapi/v3/apis/example.com/v1")

    schema = ask_of(scenario).body["components"]["schemas"]["com.example.v1.Boat"]

    assert schema["description"] == "It floats."
    assert schema["properties"]["spec"]["properties"]["size"]["description"] == "How long it is."
    assert schema["properties"]["kind"] == {"type": "string"}


def test_a_wrong_schema_is_refused():
    async def scenario(ask):
        await ask("DELETE", f"{DEFINITIONS}/boats.example.com")
        wrong = {"type": "object", "properties": {"spec": {"type": "integer", "default": "x"}}}
        return [
            await ask("POST", DEFINITIONS, definition(schema))
            for schema in (wrong, {"type": "text"}, {"minimum": "1"}, {"properties": []})
        ]

    assert [answer.code for answer in ask_of(scenario)] == [422] * 4


@pytest.mark.parametrize(
    ("version", "spec"),
    [
        ({"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".a"}]}, {}),
        ({"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ""}]}, {}),
        ({"selectableFields": [{}]}, {}),
        ({"storage": False}, {}),
        ({}, {"scope": "Everywhere"}),
        ({}, {"names": {"kind": "Boat", "plural": "ships"}}),
    ],
)
def test_a_wrong_definition_is_refused(version, spec):
    async def scenario(ask):
        await ask("DELETE", f"{DEFINITIONS}/boats.example.com")
        wrong = definition(**version)
        return await ask("POST", DEFINITIONS, {**wrong, "spec": {**wrong["spec"], **spec}})

    answer = ask_of(scenario)

    assert (answer.code, answer.reason) == (422, "Invalid")


def test_the_objects_go_with_the_definition():
    async def scenario(ask):
        await ask.made(BOATS, boat())
        await ask("DELETE", f"{DEFINITIONS}/boats.example.com")
        gone = await ask("GET", BOATS)
        await ask.made(DEFINITIONS, definition())
        return gone, await ask("GET", BOATS)

    gone, again = ask_of(scenario)

    assert gone.code == 404
    assert again.body["items"] == []
