"""Lists are what is selected, as of one version, in one answer or page by page."""

import asyncio

import pytest
from served import JOBS, MAPS, PODS, Asking, config_map, job, pod, served

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def names(answer):
    return [item["metadata"]["name"] for item in answer.body["items"]]


def ask_of(scenario):
    async def run():
        async with served() as ask:
            return await scenario(ask)

    return asyncio.run(run())


async def five(ask: Asking) -> None:
    await ask.made(MAPS, *(config_map(name) for name in "dbaec"))


def test_a_list_is_in_the_order_of_names():
    async def scenario(ask):
        await five(ask)
        return await ask("GET", MAPS)

    answer = ask_of(scenario)

    assert names(answer) == list("abcde")
    assert answer.body["kind"] == "ConfigMapList"
    assert answer.body["apiVersion"] == "v1"


def test_pages_show_the_objects_of_the_first_ones_moment():
    async def scenario(ask):
        await five(ask)
        first = await ask("GET", MAPS, limit="2")
        await ask("DELETE", f"{MAPS}/e")
        await ask.made(MAPS, config_map("cc"))
        token = first.body["metadata"]["continue"]
        second = await ask("GET", MAPS, **{"limit": "2", "continue": token})
        token = second.body["metadata"]["continue"]
        return first, second, await ask("GET", MAPS, **{"limit": "2", "continue": token})

    pages = ask_of(scenario)

    assert [names(page) for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert [page.body["metadata"].get("remainingItemCount") for page in pages] == [3, 1, None]
    assert len({page.body["metadata"]["resourceVersion"] for page in pages}) == 1
    assert "continue" not in pages[2].body["metadata"]


def test_a_forgotten_page_is_gone_and_a_token_of_another_list_is_wrong():
    async def scenario(ask):
        await five(ask)
        token = (await ask("GET", MAPS, limit="2")).body["metadata"]["continue"]
        other = await ask("GET", PODS, **{"continue": token})
        for _ in range(64):
            await ask("GET", MAPS, limit="2")
        return other, await ask("GET", MAPS, **{"continue": token})

    other, forgotten = ask_of(scenario)

    assert other.code == 400
    assert (forgotten.code, forgotten.reason) == (410, "Expired")


@pytest.mark.parametrize(
    ("version", "rule", "code"),
    [
        ("", "", 200),
        ("0", "", 200),
        ("1", "", 200),
        ("1", "NotOlderThan", 200),
        ("now", "Exact", 200),
        ("1", "Exact", 410),
        ("999999", "", 504),
        ("999999", "Exact", 504),
        ("0", "Exact", 422),
        ("", "Exact", 422),
        ("x", "", 400),
        ("-1", "", 400),
        ("1", "Newest", 422),
    ],
)
def test_a_version_that_cannot_be_answered_is_not(version, rule, code):
    async def scenario(ask):
        await five(ask)
        asked = {"resourceVersion": version.replace("now", str(ask.store.version))}
        if rule:
            asked["resourceVersionMatch"] = rule
        return await ask("GET", MAPS, **asked)

    assert ask_of(scenario).code == code


@pytest.mark.parametrize(
    "asked",
    [
        {"sendInitialEvents": "true"},
        {"continue": "t", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
    ],
)
def test_options_that_a_list_has_no_place_for_are_refused(asked):
    assert ask_of(lambda ask: ask("GET", MAPS, **asked)).code == 422


def test_a_table_has_the_columns_that_kubectl_shows():
    async def scenario(ask):
        await ask.made(JOBS, job("train"))
        await ask.made(PODS, pod("p"))
        table = {"headers": {"Accept": TABLE}}
        return await ask("GET", JOBS, **table), await ask("GET", f"{PODS}/p", **table)

    jobs, one_pod = ask_of(scenario)

    def row(answer):
        columns = answer.body["columnDefinitions"]
        return dict(
            zip(
                (column["name"] for column in columns), answer.body["rows"][0]["cells"], strict=True
            )
        )

    assert jobs.body["kind"] == "Table"
    assert list(row(jobs)) == ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"]
    assert row(jobs)["QUEUE"] == "default"
    assert row(one_pod)["Ready"] == "0/1"
    assert row(one_pod)["Status"] == "Pending"
    assert one_pod.body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("include", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod")]
)
def test_rows_carry_as_much_of_the_object_as_is_asked(include, kind):
    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        return await ask("GET", PODS, headers={"Accept": TABLE}, includeObject=include)

    row = ask_of(scenario).body["rows"][0]

    assert row.get("object", {}).get("kind") == kind


def test_metadata_alone_can_be_listed():
    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        return await ask("GET", PODS, headers={"Accept": PARTIAL})

    body = ask_of(scenario).body

    assert body["kind"] == "PartialObjectMetadataList"
    assert list(body["items"][0]) == ["kind", "apiVersion", "metadata"]


@pytest.mark.parametrize("path", [PODS, f"{PODS}/p"])
@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadata"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_form_is_of_the_version_that_was_asked_for(path, form, version):
    if path == PODS and form != "Table":
        form += "List"

    async def scenario(ask):
        await ask.made(PODS, pod("p"))
        accept = f"application/json;as={form};v={version};g=meta.k8s.io"
        return await ask("GET", path, headers={"Accept": accept})

    answer = ask_of(scenario)

    assert (answer.body["kind"], answer.body["apiVersion"]) == (form, f"meta.k8s.io/{version}")
    for inner in answer.body.get("rows") or answer.body.get("items") or ():
        shown = inner.get("object", inner)
        assert shown["apiVersion"] == f"meta.k8s.io/{version}"


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_long_list_in_parts_is_whole(encoding):
    async def scenario(ask):
        expected = [f"p-{number:04}" for number in range(1100)]
        await asyncio.gather(*(ask.made(PODS, pod(name)) for name in expected))
        answer = await ask("GET", PODS, headers={"Accept-Encoding": encoding})
        return expected, names(answer), answer.headers.get("Content-Encoding", "identity")

    expected, found, used = ask_of(scenario)

    assert found == expected
    assert used == encoding


def test_selectors_choose_what_is_listed_and_deleted_together():
    async def scenario(ask):
        await ask.made(PODS, pod("a", app="x"), pod("b", app="y"), pod("c", app="x"))
        chosen = await ask("GET", PODS, labelSelector="app=x", fieldSelector="metadata.name!=c")
        gone = await ask("DELETE", PODS, labelSelector="app=x")
        return chosen, gone, await ask("GET", PODS)

    chosen, gone, left = ask_of(scenario)

    assert names(chosen) == ["a"]
    assert names(gone) == ["a", "c"]
    assert names(left) == ["b"]


def test_events_have_two_shapes_of_one_object():
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "happened",
        "reportingController": "me",
        "eventTime": "2027-01-15T08:00:00.000000Z",
    }

    async def scenario(ask):
        await ask.made(newer, event)
        core = await ask("GET", "/api/v1/namespaces/default/events/e")
        chosen = await ask("GET", newer, fieldSelector="regarding.name=p")
        return core, chosen, await ask("GET", newer, fieldSelector="regarding.name=q")

    core, chosen, others = ask_of(scenario)

    assert core.body["apiVersion"] == "v1"
    assert core.body["involvedObject"]["name"] == "p"
    assert core.body["message"] == "happened"
    assert chosen.body["items"][0]["note"] == "happened"
    assert chosen.body["items"][0]["apiVersion"] == "events.k8s.io/v1"
    assert names(others) == []
