"""Writes change what they say and nothing else, or say why not."""

import asyncio
import base64

import pytest
from served import JOBS, MAPS, PODS, config_map, job, pod, served

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
NAMESPACES = "/api/v1/namespaces"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(**changed):
    spec = {
        "group": "example.com",
        "names": {"kind": "Boat", "plural": "boats"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True}],
    }
    return {"metadata": {"name": "boats.example.com"}, "spec": {**spec, **changed}}


def ask_of(scenario):
    async def run():
        async with served() as ask:
            return await scenario(ask)

    return asyncio.run(run())


def test_a_name_is_generated_and_a_second_of_one_name_refused():
    async def scenario(ask):
        made = await ask("POST", MAPS, {"metadata": {"generateName": "a-"}})
        name = made.body["metadata"]["name"]
        return name, await ask("POST", MAPS, config_map(name))

    name, again = ask_of(scenario)

    assert name.startswith("a-")
    assert len(name) == 7
    assert (again.code, again.reason) == (409, "AlreadyExists")
    assert again.body["message"] == f'configmaps "{name}" already exists'


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {}},
        {"metadata": {"name": "A_b"}},
        {"metadata": {"name": "a" * 254}},
        {"metadata": {"name": "a/b"}},
        {"metadata": {"name": ".."}},
        {"metadata": {"generateName": "A-"}},
        {"metadata": {"name": "a"}, "data": {"x": 1}},
        {"metadata": {"name": "a"}, "data": {"a/b": "x"}},
    ],
)
def test_an_object_that_is_wrong_is_refused_with_the_field(wrong):
    async def scenario(ask):
        return await ask("POST", MAPS, wrong)

    answer = ask_of(scenario)

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert all(cause["field"] for cause in answer.body["details"]["causes"])


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"kind": "Secret"}, "kind"),
        ({"apiVersion": "v2"}, "apiVersion"),
        ({"metadata": {"name": "a", "namespace": "other"}}, "namespace"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, "resourceVersion"),
    ],
)
def test_an_object_for_another_place_is_refused(changed, part):
    async def scenario(ask):
        return await ask("POST", MAPS, {**config_map("a"), **changed})

    answer = ask_of(scenario)

    assert answer.code == 400
    assert part in answer.body["message"]


def test_nothing_is_stored_by_a_dry_run():
    async def scenario(ask):
        dry = await ask("POST", MAPS, config_map("a"), dryRun="All")
        absent = await ask("GET", f"{MAPS}/a")
        await ask.made(MAPS, config_map("a", x="1"))
        patched = await ask("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, type=MERGE, dryRun="All")
        await ask("DELETE", f"{MAPS}/a", dryRun="All")
        wrong = await ask("POST", MAPS, config_map("b"), dryRun="Some")
        return dry, absent, patched, wrong, await ask("GET", f"{MAPS}/a")

    dry, absent, patched, wrong, left = ask_of(scenario)

    assert (dry.code, absent.code, wrong.code) == (201, 404, 422)
    assert "resourceVersion" not in dry.body["metadata"]
    assert patched.body["metadata"]["resourceVersion"] == left.body["metadata"]["resourceVersion"]
    assert patched.body["data"] == {"x": "2"}
    assert left.body["data"] == {"x": "1"}


def test_an_update_from_an_old_state_is_a_conflict():
    async def scenario(ask):
        [old] = await ask.made(MAPS, config_map("a", x="1"))
        new = await ask("PUT", f"{MAPS}/a", {**old, "data": {"x": "2"}})
        stale = await ask("PUT", f"{MAPS}/a", {**old, "data": {"x": "3"}})
        blind = await ask("PUT", f"{MAPS}/a", config_map("a", x="4"))
        return old, new, stale, blind

    old, new, stale, blind = ask_of(scenario)

    assert new.body["metadata"]["uid"] == old["metadata"]["uid"]
    assert new.body["metadata"]["creationTimestamp"] == old["metadata"]["creationTimestamp"]
    assert (stale.code, stale.reason) == (409, "Conflict")
    assert blind.body["data"] == {"x": "4"}


def test_status_and_the_rest_are_written_apart():
    async def scenario(ask):
        [made] = await ask.made(PODS, {**pod("p"), "status": {"phase": "Running"}})
        running = {**made, "metadata": {"name": "p", "labels": {"a": "b"}},
                   "status": {"phase": "Running"}}  # fmt: skip
        whole = await ask("PUT", f"{PODS}/p", running)
        status = await ask("PUT", f"{PODS}/p/status", running)
        other = {"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "c"}}}
        patched = await ask("PATCH", f"{PODS}/p/status", other, type=MERGE)
        return made, whole.body, status.body, patched.body

    made, whole, status, patched = ask_of(scenario)

    assert made["status"]["phase"] == "Pending"
    assert whole["status"]["phase"] == "Pending"
    assert status["status"]["phase"] == "Running"
    assert patched["status"]["phase"] == "Failed"
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert patched["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"data": {"x": None, "z": "3"}}),
        (STRATEGIC, {"data": {"x": None, "z": "3"}}),
        (
            JSON_PATCH,
            [{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/data/z", "value": "3"}],
        ),
    ],
)
def test_every_kind_of_patch_changes_what_it_names(kind, patch):
    async def scenario(ask):
        await ask.made(MAPS, config_map("a", x="1", y="2"))
        return await ask("PATCH", f"{MAPS}/a", patch, type=kind)

    assert ask_of(scenario).body["data"] == {"y": "2", "z": "3"}


@pytest.mark.parametrize(
    ("kind", "patch", "code"),
    [
        ("text/plain", {}, 415),
        (MERGE, [], 400),
        (JSON_PATCH, {}, 400),
        (JSON_PATCH, [{"op": "test", "path": "/data/x", "value": "9"}], 422),
        (JSON_PATCH, [{"op": "remove", "path": "/metadata"}], 422),
        (MERGE, {"metadata": {"name": "b"}}, 400),
        (MERGE, {"kind": "Secret"}, 400),
        (MERGE, {"metadata": {"uid": "other"}}, 409),
        (MERGE, {"metadata": {"resourceVersion": "1"}}, 409),
        (MERGE, {"data": 1}, 422),
        (MERGE, {"metadata": None}, 422),
    ],
)
def test_a_patch_that_cannot_be_is_refused_and_changes_nothing(kind, patch, code):
    async def scenario(ask):
        [before] = await ask.made(MAPS, config_map("a", x="1"))
        answer = await ask("PATCH", f"{MAPS}/a", patch, type=kind)
        return before, answer, (await ask("GET", f"{MAPS}/a")).body

    before, answer, after = ask_of(scenario)

    assert answer.code == code, answer
    assert after == before


def test_a_patch_that_changes_nothing_is_no_new_version():
    async def scenario(ask):
        [before] = await ask.made(MAPS, config_map("a", x="1"))
        return before, (await ask("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, type=MERGE)).body

    before, after = ask_of(scenario)

    assert after == before


def test_strategic_patches_are_not_for_custom_kinds():
    async def scenario(ask):
        await ask.made(JOBS, job("j"))
        return await ask("PATCH", f"{JOBS}/j", {}, type=STRATEGIC)

    assert ask_of(scenario).code == 415


@pytest.mark.parametrize(
    ("rule", "code", "told"),
    [("Strict", 400, False), ("Warn", 201, True), ("", 201, True), ("Ignore", 201, False)],
)
def test_unknown_fields_are_refused_told_or_dropped(rule, code, told):
    async def scenario(ask):
        wrong = job("j")
        wrong["spec"]["minAvailible"] = 1
        query = {"fieldValidation": rule} if rule else {}
        answer = await ask("POST", JOBS, wrong, **query)
        return answer, answer.headers.getall("Warning", [])

    answer, warnings = ask_of(scenario)

    assert answer.code == code
    assert any('unknown field \\"spec.minAvailible\\"' in one for one in warnings) is told
    if code == 201:
        assert "minAvailible" not in answer.body["spec"]
    else:
        assert 'unknown field "spec.minAvailible"' in answer.body["message"]


def test_duplicate_fields_are_refused_by_strict_validation():
    body = b'{"metadata": {"name": "a"}, "data": {"x": "1", "x": "2"}}'

    async def scenario(ask):
        return await ask("POST", MAPS, body, fieldValidation="Strict")

    answer = ask_of(scenario)

    assert answer.code == 400
    assert 'duplicate field "x"' in answer.body["message"]


def test_a_job_that_is_changed_gets_its_defaults_again():
    """As kubectl apply sends a list of tasks that has not changed: without what was filled in."""

    async def scenario(ask):
        [made] = await ask.made(JOBS, job("a"))
        tasks = {"spec": {"tasks": job("a")["spec"]["tasks"]}}
        return made, await ask("PATCH", f"{JOBS}/a", tasks, type=MERGE)

    made, patched = ask_of(scenario)

    assert patched.body["spec"] == made["spec"]
    assert patched.body["spec"]["tasks"][0]["maxRetry"] == 3
    assert patched.body["metadata"]["generation"] == 1
    assert patched.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_job_gets_its_defaults_and_a_wrong_one_is_told_every_fault():
    async def scenario(ask):
        [made] = await ask.made(JOBS, job("good"))
        wrong = job("bad", queue="nowhere", minAvailable=9)
        wrong["spec"]["tasks"][0]["policies"] = [{"event": "PodFailed", "action": "Explode"}]
        return made, await ask("POST", JOBS, wrong)

    made, refused = ask_of(scenario)

    assert made["spec"]["queue"] == "default"
    assert made["spec"]["minAvailable"] == 2
    assert (refused.code, refused.reason) == (422, "Invalid")
    fields = {cause["field"] for cause in refused.body["details"]["causes"]}
    assert {"spec.queue", "spec.minAvailable"} <= fields
    assert any(field.startswith("spec.tasks[0].policies[0]") for field in fields)


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}], 200),
        ([{"op": "replace", "path": "/spec/queue", "value": "other"}], 422),
        ([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": -1}], 422),
        ([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], 200),
    ],
)
def test_of_a_job_that_runs_only_some_fields_change(patch, code):
    async def scenario(ask):
        await ask.made(JOBS, job("j"))
        return await ask("PATCH", f"{JOBS}/j", patch, type=JSON_PATCH)

    assert ask_of(scenario).code == code


def test_of_a_pod_only_images_and_little_else_change():
    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
        command = {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}
        return (
            await ask("PATCH", f"{PODS}/p", image, type=STRATEGIC),
            await ask("PATCH", f"{PODS}/p", command, type=STRATEGIC),
        )

    image, command = ask_of(scenario)

    assert image.body["spec"]["containers"][0]["image"] == "other"
    assert image.body["spec"]["containers"][0]["terminationMessagePolicy"] == "File"
    assert command.code == 422


def test_what_is_immutable_stays():
    async def scenario(ask):
        await ask.made(MAPS, {**config_map("a", x="1"), "immutable": True})
        data = await ask("PATCH", f"{MAPS}/a", {"data": {"x": "2"}}, type=MERGE)
        labels = await ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"a": "b"}}}, type=MERGE)
        return data, labels

    data, labels = ask_of(scenario)

    assert (data.code, labels.code) == (422, 200)


def test_kubernetes_own_kinds_get_the_defaults_that_clients_rely_on():
    async def scenario(ask):
        [made] = await ask.made(PODS, pod("p"))
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        [served_one] = await ask.made("/api/v1/namespaces/default/services", service)
        [namespace] = await ask.made(NAMESPACES, {"metadata": {"name": "n"}})
        return made["spec"], served_one["spec"], namespace

    spec, service, namespace = ask_of(scenario)

    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert service["type"] == "ClusterIP"
    assert service["clusterIP"] == "None"
    assert service["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("configmaps", {"data": {"a": "x" * 2**19, "b": "y" * (2**19 + 1)}}),
        ("secrets", {"stringData": {"a": "x" * (2**20 + 1)}}),
        ("secrets", {"data": {"a": base64.b64encode(b"x" * (2**20 + 1)).decode()}}),
    ],
)
def test_values_beyond_a_mebibyte_are_refused_on_create_and_change(kind, values):
    path = f"/api/v1/namespaces/default/{kind}"

    async def scenario(ask):
        new = await ask("POST", path, {"metadata": {"name": "n"}, **values})
        await ask.made(path, {"metadata": {"name": "n"}})
        return new, await ask("PATCH", f"{path}/n", values, type=MERGE)

    for answer in ask_of(scenario):
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert "may not have more than 1,048,576" in answer.body["message"]


def test_plain_texts_of_a_secret_are_encoded_and_never_read_back():
    secrets = "/api/v1/namespaces/default/secrets"

    async def scenario(ask):
        body = {"metadata": {"name": "s"}, "data": {"a": "MQ==", "b": "Mg=="}}
        made = await ask("POST", secrets, {**body, "stringData": {"b": "3"}})
        path = f"{secrets}/s"
        return made, await ask("PATCH", path, {"stringData": {"c": "é"}}, type=MERGE)

    made, patched = ask_of(scenario)

    assert made.body["data"] == {"a": "MQ==", "b": "Mw=="}
    assert patched.body["data"] == {"a": "MQ==", "b": "Mw==", "c": "w6k="}
    assert "stringData" not in made.body
    assert "stringData" not in patched.body


def test_a_deletion_answers_what_is_gone_or_what_is_still_there():
    async def scenario(ask):
        kept = {"metadata": {"name": "kept", "finalizers": ["example.com/wait"]}}
        made = await ask.made(MAPS, config_map("a"), kept)
        gone = await ask("DELETE", f"{MAPS}/a")
        marked = await ask("DELETE", f"{MAPS}/kept")
        await ask("PATCH", f"{MAPS}/kept", {"metadata": {"finalizers": None}}, type=MERGE)
        return made[0], gone, marked, await ask("GET", f"{MAPS}/kept")

    made, gone, marked, after = ask_of(scenario)

    assert gone.body["status"] == "Success"
    assert gone.body["details"]["uid"] == made["metadata"]["uid"]
    assert marked.body["metadata"]["deletionTimestamp"]
    assert after.code == 404


def test_a_namespace_goes_with_all_that_is_in_it():
    async def scenario(ask):
        inside = "/api/v1/namespaces/n"
        await ask.made(NAMESPACES, {"metadata": {"name": "n"}})
        account = await ask("GET", f"{inside}/serviceaccounts/default")
        kept = {"metadata": {"name": "kept", "finalizers": ["example.com/wait"]}}
        await ask.made(f"{inside}/configmaps", kept)
        async with ask.watching(NAMESPACES, fieldSelector="metadata.name=n") as events:
            await events.next()
            deleted = await ask("DELETE", f"{NAMESPACES}/n")
            late = await ask("POST", f"{inside}/configmaps", config_map("late"))
            patch = {"metadata": {"finalizers": None}}
            await ask("PATCH", f"{inside}/configmaps/kept", patch, type=MERGE)
            kind = ""
            while kind != "DELETED":
                kind, _ = await events.next()
        return account, deleted, late, await ask("GET", f"{inside}/serviceaccounts/default")

    account, deleted, late, after = ask_of(scenario)

    assert (account.code, after.code, late.code) == (200, 404, 403)
    assert deleted.body["status"]["phase"] == "Terminating"


def test_a_namespace_is_not_let_go_of_while_something_is_in_it():
    async def scenario(ask):
        await ask.made(NAMESPACES, {"metadata": {"name": "n"}})
        path, inside = f"{NAMESPACES}/n", f"{NAMESPACES}/n/configmaps"
        held = {"metadata": {"name": "a", "finalizers": ["example.com/mine"]}}
        off = {"metadata": {"finalizers": None}}
        await ask.made(inside, held)
        async with ask.watching(NAMESPACES, fieldSelector="metadata.name=n") as events:
            await events.next()
            await ask("DELETE", path)
            patched = await ask("PATCH", path, off, type=MERGE)
            left = await ask("GET", f"{inside}/a")
            await ask("PATCH", f"{inside}/a", off, type=MERGE)
            kind = ""
            while kind != "DELETED":
                kind, _ = await events.next()
        return patched, left

    patched, left = ask_of(scenario)

    assert patched.body["status"]["phase"] == "Terminating"
    assert left.code == 200


def test_objects_are_made_only_in_namespaces_that_exist_and_some_stay():
    async def scenario(ask):
        return (
            await ask("POST", "/api/v1/namespaces/absent/configmaps", config_map("a")),
            await ask("DELETE", f"{NAMESPACES}/default"),
            await ask("DELETE", "/apis/scheduling.volcano.sh/v1beta1/queues/default"),
        )

    absent, namespace, queue = ask_of(scenario)

    assert (absent.code, absent.body["message"]) == (404, 'namespaces "absent" not found')
    assert (namespace.code, queue.code) == (403, 403)


def test_queues_keep_their_place_in_the_tree():
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"

    async def scenario(ask):
        def queue(name, **spec):
            return {"metadata": {"name": name}, "spec": spec}

        await ask("POST", queues, queue("upper", capability={"cpu": "2"}))
        await ask("POST", queues, queue("lower", parent="upper", capability={"cpu": "2"}))
        refused = [
            await ask("POST", queues, queue("x", parent="nowhere")),
            await ask("POST", queues, queue("x", parent="upper", capability={"cpu": "3"})),
            await ask("PATCH", f"{queues}/upper", {"spec": {"parent": "lower"}}, type=MERGE),
            await ask("PATCH", f"{queues}/lower", {"spec": {"capability": {"cpu": "3"}}},
                      type=MERGE),
            await ask("DELETE", f"{queues}/upper"),
        ]  # fmt: skip
        label = {"metadata": {"labels": {"team": "a"}}}
        allowed = [
            await ask("PATCH", f"{queues}/upper", label, type=MERGE),
            await ask("DELETE", f"{queues}/lower"),
            await ask("DELETE", f"{queues}/upper"),
        ]
        return refused, allowed

    refused, allowed = ask_of(scenario)

    assert [one.code for one in refused] == [422, 422, 422, 422, 403]
    assert 'there is no queue "nowhere"' in refused[0].body["message"]
    assert "delete these first: lower" in refused[-1].body["message"]
    assert [one.code for one in allowed] == [200, 200, 200]


def test_a_pod_is_evicted():
    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        return await ask("POST", f"{PODS}/p/eviction", {}), await ask("GET", f"{PODS}/p")

    evicted, left = ask_of(scenario)

    assert (evicted.code, left.code) == (201, 404)


def test_a_custom_kind_is_served_from_its_definition_until_that_goes():
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    definition = {
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Boat", "plural": "boats", "shortNames": ["bo"]},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                 "additionalPrinterColumns": [column], "schema": {}},
                {"name": "v1beta1", "served": True, "storage": False, "schema": {}},
            ],
        },
    }  # fmt: skip
    boats = "/apis/example.com/v1/namespaces/default/boats"

    async def scenario(ask):
        before = await ask("GET", boats)
        [made] = await ask.made(DEFINITIONS, definition)
        await ask.made(boats, {"metadata": {"name": "b"}, "spec": {"size": 3}})
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        table = await ask("GET", boats, headers=accept)
        older = await ask("GET", boats.replace("v1", "v1beta1") + "/b")
        groups = await ask("GET", "/apis")
        await ask("DELETE", f"{DEFINITIONS}/boats.example.com")
        return before, made, table, older, groups, await ask("GET", boats)

    before, made, table, older, groups, after = ask_of(scenario)

    assert (before.code, after.code) == (404, 404)
    conditions = {one["type"]: one["status"] for one in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert table.body["rows"][0]["cells"][:2] == ["b", 3]
    assert older.body["apiVersion"] == "example.com/v1beta1"
    assert "example.com" in {group["name"] for group in groups.body["groups"]}


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (NAMESPACES, {"metadata": {"name": "a", "labels": 5}}),
        ("/apis/scheduling.volcano.sh/v1beta1/queues", {"metadata": {"name": "a"}, "spec": 5}),
        ("/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": "x"}),
        ("/api/v1/nodes", {"metadata": {"name": "a", "finalizers": 1}}),
        (DEFINITIONS, {"metadata": {"name": "a.b"}, "spec": 1}),
        (DEFINITIONS, definition(versions=[1])),
        (DEFINITIONS, definition(versions=[])),
        (DEFINITIONS, definition(versions=[{"name": "v1", "served": True, "storage": False}])),
        (DEFINITIONS, definition(group="other.example")),
        (DEFINITIONS, definition(names={"kind": "Boat", "plural": "a/b"})),
    ],
)
def test_objects_whose_parts_have_wrong_types_are_refused(path, wrong):
    async def scenario(ask):
        return await ask("POST", path, wrong)

    assert ask_of(scenario).code == 422


@pytest.mark.parametrize("status", [5, "x", [1], {"phase": 5}, {"conditions": {}}])
def test_a_status_of_a_wrong_type_is_refused(status):
    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        return await ask("PATCH", f"{PODS}/p/status", {"status": status}, type=MERGE)

    assert ask_of(scenario).code == 422


def test_what_is_applied_is_made_kept_and_let_go():
    async def scenario(ask):
        def wish(**data):
            return {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a", **data)}

        async def put(manager, body, **more):
            return await ask("PATCH", f"{MAPS}/a", body, type=APPLY, fieldManager=manager, **more)

        made = await put("one", wish(x="1", y="2"))
        other = await put("two", wish(z="3"))
        dropped = await put("one", wish(x="1"))
        conflict = await put("two", wish(x="9", z="3"))
        forced = await put("two", wish(x="9", z="3"), force="true")
        nobody = await ask("PATCH", f"{MAPS}/a", wish(), type=APPLY)
        return made, other, dropped, conflict, forced, nobody

    made, other, dropped, conflict, forced, nobody = ask_of(scenario)

    assert made.code == 201
    assert other.body["data"] == {"x": "1", "y": "2", "z": "3"}
    assert dropped.body["data"] == {"x": "1", "z": "3"}
    assert conflict.code == 409
    assert conflict.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    ]
    assert forced.body["data"] == {"x": "9", "z": "3"}
    assert nobody.code == 422


@pytest.mark.parametrize("lacking", ["apiVersion", "kind"])
def test_what_does_not_say_what_it_is_is_not_applied(lacking):
    wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}

    async def scenario(ask):
        path = f"{MAPS}/a"
        await ask("PATCH", path, wish, type=APPLY, fieldManager="m")
        rest = {key: value for key, value in wish.items() if key not in (lacking, "data")}
        answer = await ask("PATCH", path, rest, type=APPLY, fieldManager="m")
        return answer, await ask("GET", path)

    answer, left = ask_of(scenario)

    assert (answer.code, answer.body["message"]) == (
        400, f"the object that is applied must say its {lacking}",
    )  # fmt: skip
    assert left.body["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("method", "type", "query"),
    [
        ("PATCH", MERGE, {"force": "true"}),
        ("PATCH", MERGE, {"fieldManager": "m" * 129}),
        ("PATCH", APPLY, {"fieldManager": "m\n"}),
        ("PATCH", APPLY, {}),
        ("PATCH", MERGE, {"fieldValidation": "Some"}),
        ("PUT", "application/json", {"fieldManager": "m" * 129}),
        ("POST", "application/json", {"fieldManager": "m" * 129}),
    ],
)
def test_options_that_cannot_be_are_refused(method, type, query):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    async def scenario(ask):
        path = MAPS if method == "POST" else f"{MAPS}/a"
        if method != "POST":
            await ask.made(MAPS, config_map("a"))
        return await ask(method, path, body, type=type, **query)

    answer = ask_of(scenario)

    assert (answer.code, answer.reason) == (422, "Invalid")


def test_a_patch_takes_over_what_was_applied():
    async def scenario(ask):
        wish = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a"), "data": {"x": "1"}}
        path = f"{MAPS}/a"
        await ask("PATCH", path, wish, type=APPLY, fieldManager="one")
        agent = {"User-Agent": "some-tool/1.0 (linux)"}
        patched = await ask("PATCH", path, {"data": {"x": "2"}}, type=MERGE, headers=agent)
        again = await ask("PATCH", path, wish, type=APPLY, fieldManager="one")
        forced = await ask("PATCH", path, wish, type=APPLY, fieldManager="one", force="true")
        return patched, again, forced

    patched, again, forced = ask_of(scenario)

    managers = [(one["manager"], one["operation"]) for one in
                patched.body["metadata"]["managedFields"]]  # fmt: skip
    assert ("some-tool", "Update") in managers
    assert again.code == 409
    assert 'conflict with "some-tool": .data.x' in again.body["message"]
    assert forced.body["data"] == {"x": "1"}


@pytest.mark.parametrize("managed", [5, [5], [{"fieldsV1": 5}], [{"fieldsV1": {}}], [None]])
def test_whatever_a_client_says_of_managers_is_answered(managed):
    async def scenario(ask):
        await ask.made(MAPS, config_map("a"))
        patch = {"metadata": {"managedFields": managed}, "data": {"x": "2"}}
        first = await ask("PATCH", f"{MAPS}/a", patch, type=MERGE)
        second = await ask("PATCH", f"{MAPS}/a", {"data": {"x": "3"}}, type=MERGE)
        wish = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a"), "data": {"x": "1"}}
        third = await ask("PATCH", f"{MAPS}/a", wish, type=APPLY, fieldManager="one")
        return [first.code, second.code, third.code]

    assert set(ask_of(scenario)) <= {200, 422}


@pytest.mark.parametrize(
    "metadata",
    [{"managedFields": 5}, {"managedFields": [5]}, {"labels": 5}, {"labels": {"a": "b c"}},
     {"finalizers": "x"}, {"ownerReferences": [{"name": "x"}]}, {"annotations": {"a": 1}}],
)  # fmt: skip
@pytest.mark.parametrize(
    ("path", "made"), [(PODS, pod("a")), (JOBS, job("a")), (MAPS, config_map("a"))]
)
def test_wrong_metadata_is_refused_although_nothing_else_changes(path, made, metadata):
    async def scenario(ask):
        await ask.made(path, made)
        return await ask("PATCH", f"{path}/a", {"metadata": metadata}, type=MERGE)

    assert ask_of(scenario).code == 422


def test_a_pod_gets_the_priority_of_its_class_or_is_refused():
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    wanted = pod("p")
    wanted["spec"] = {**wanted["spec"], "priorityClassName": "urgent"}

    async def scenario(ask):
        before = await ask("POST", PODS, wanted)
        await ask.made(classes, {"metadata": {"name": "urgent"}, "value": 7})
        return before, await ask("POST", PODS, wanted), await ask("POST", PODS, pod("q"))

    before, after, without = ask_of(scenario)

    assert (before.code, before.reason) == (403, "Forbidden")
    assert "no PriorityClass with name urgent" in before.body["message"]
    assert after.body["spec"]["priority"] == 7
    assert without.body["spec"]["priority"] == 0
