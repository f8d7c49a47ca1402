"""A watch tells every change of what is selected, once and in order."""

import asyncio

import aiohttp
import msgspec
import pytest
from served import MAPS, NOW, PODS, config_map, pod, served

from vcjob.local.apiserver import server, watching
from vcjob.local.store import Store

MORE = {"allowWatchBookmarks": "true", "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan"}  # fmt: skip


def ask_of(scenario, **options):
    async def run():
        async with served(**options) as ask:
            return await scenario(ask)

    return asyncio.run(run())


async def told(events, count):
    found = [await events.next() for _ in range(count)]
    return [(kind, obj["metadata"].get("name", "")) for kind, obj in found]


def test_a_watch_without_a_version_begins_with_what_there_is():
    async def scenario(ask):
        await ask.made(MAPS, config_map("a"))
        async with ask.watching(MAPS) as events:
            first = await told(events, 1)
            await ask.made(MAPS, config_map("b"))
            await ask("DELETE", f"{MAPS}/a")
            return first + await told(events, 2)

    assert ask_of(scenario) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_from_the_version_of_a_list_misses_and_repeats_nothing():
    async def scenario(ask):
        await ask.made(MAPS, config_map("a"))
        version = (await ask("GET", MAPS)).body["metadata"]["resourceVersion"]
        await ask.made(MAPS, config_map("b"))
        async with ask.watching(MAPS, resourceVersion=version) as events:
            await ask(
                "PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, type="application/merge-patch+json"
            )
            return await told(events, 2)

    assert ask_of(scenario) == [("ADDED", "b"), ("MODIFIED", "a")]


def test_objects_come_and_go_with_their_labels():
    async def scenario(ask):
        await ask.made(PODS, pod("p", app="x"), pod("q", app="y"))
        async with ask.watching(PODS, labelSelector="app=x") as events:
            for label in ("y", "x"):
                patch = {"metadata": {"labels": {"app": label}}}
                await ask("PATCH", f"{PODS}/p", patch, type="application/merge-patch+json")
            return await told(events, 3)

    assert ask_of(scenario) == [("ADDED", "p"), ("DELETED", "p"), ("ADDED", "p")]


def test_the_end_of_what_there_was_is_marked_for_those_who_ask():
    async def scenario(ask):
        await ask.made(MAPS, config_map("a"))
        async with ask.watching(MAPS, **MORE) as events:
            return await events.next(), await events.next()

    (first, _), (kind, mark) = ask_of(scenario)

    assert (first, kind) == ("ADDED", "BOOKMARK")
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) > 0


def test_a_watch_ends_when_its_time_is_over_with_a_bookmark():
    async def scenario(ask):
        version = str(ask.store.version)
        watched = {"resourceVersion": version, "timeoutSeconds": "1", "allowWatchBookmarks": "1"}
        async with ask.watching(MAPS, **watched) as events:
            return await events.next(), await events.next()

    (kind, _), end = ask_of(scenario)

    assert kind == "BOOKMARK"
    assert end == ("", None)


def test_a_version_that_is_forgotten_is_told_as_a_status():
    async def scenario(ask):
        await ask.made(MAPS, *(config_map(f"m-{number}") for number in range(10)))
        async with ask.watching(MAPS, resourceVersion="1") as events:
            return await events.next(), await events.next()

    (kind, status), end = ask_of(scenario, store=Store(lambda: NOW, history=5))

    assert kind == "ERROR"
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert end == ("", None)


def test_parameters_that_contradict_each_other_are_refused():
    async def scenario(ask):
        return [
            (await ask("GET", MAPS, watch="true", **query)).code
            for query in (
                {"sendInitialEvents": "true"},
                {"resourceVersionMatch": "NotOlderThan"},
                {"resourceVersion": "x"},
            )
        ]

    assert ask_of(scenario) == [422, 422, 400]


def test_a_watch_can_be_a_table_whose_first_event_has_the_columns():
    async def scenario(ask):
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        await ask.made(PODS, pod("a"), pod("b"))
        url, query = ask.url + PODS, {"watch": "1"}
        async with ask.session.get(url, params=query, headers=accept) as response:
            return [msgspec.json.decode(await response.content.readline()) for _ in range(2)]

    first, second = ask_of(scenario)

    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "b"


def test_a_hundred_watches_are_told_everything():
    async def scenario(ask):
        async with aiohttp.ClientSession(
            headers=ask.session.headers, connector=aiohttp.TCPConnector(limit=0)
        ) as session:
            ask.session = session
            version = str(ask.store.version)

            async def watch():
                async with ask.watching(MAPS, resourceVersion=version) as events:
                    return await told(events, 50)

            watches = [asyncio.create_task(watch()) for _ in range(100)]
            await ask.made(MAPS, *(config_map(f"m-{number:02}") for number in range(50)))
            return await asyncio.gather(*watches)

    expected = [("ADDED", f"m-{number:02}") for number in range(50)]

    assert ask_of(scenario) == [expected] * 100


def test_a_reader_that_takes_nothing_is_dropped_and_others_go_on(monkeypatch):
    dropped = asyncio.Event()
    drop = watching._Stream.drop

    def noticed(stream):
        dropped.set()
        return drop(stream)

    monkeypatch.setattr(watching, "_SLOWEST_READER", 0.2)
    monkeypatch.setattr(watching._Stream, "drop", noticed)

    async def scenario(ask):
        big = "x" * 500_000
        lazy = await ask.session.get(ask.url + MAPS, params={"watch": "1"})
        await ask.made(MAPS, *(config_map(f"m-{number}", big=big) for number in range(40)))
        await dropped.wait()
        with pytest.raises(aiohttp.ClientError):
            await lazy.read()
        lazy.close()
        return (await ask("GET", f"{MAPS}/m-1")).code

    assert ask_of(scenario) == 200


def test_a_reader_that_vanishes_ends_its_watch(monkeypatch):
    ended = asyncio.Queue()

    async def noted(*arguments):
        try:
            return await watching.watch(*arguments)
        finally:
            ended.put_nowait(None)

    monkeypatch.setattr(server, "watch", noted)

    async def scenario(ask):
        for _ in range(20):
            async with ask.watching(MAPS):
                pass
        for _ in range(20):
            await ended.get()
        return (await ask("GET", MAPS)).code

    assert ask_of(scenario) == 200
