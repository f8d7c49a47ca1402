"""Objects on disk: what is given back, what is refused, and what a disk without room does."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from vcjob.api.kinds import CONFIG_MAP, POD, Kind
from vcjob.api.types import Object
from vcjob.controller.cluster import Gone, Invalid, StorageFailed
from vcjob.local.disk.database import FORMAT, Database
from vcjob.local.objects import Write
from vcjob.local.run_directory import StateUnusable
from vcjob.local.store import Store

CUSTOM = Kind("example.org", "v1", "Thing", "things", namespaced=False)


def opened(path: Path) -> tuple[Store, Database]:
    """A store with what the file holds."""
    database = Database(path)
    store = Store(lambda: 0.0, disk=database)
    store.load(database.version, database.objects())
    return store, database


def named(name: str, **more: object) -> Object:
    return {"metadata": {"name": name}, **more}


def test_a_store_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "objects"

    async def first() -> list[Object]:
        store, database = opened(path)
        owner = await store.create(CUSTOM, named("owner", spec={"ü": [1, 2.5, None, True]}))
        reference = {"kind": "Thing", "name": "owner", "uid": owner["metadata"]["uid"]}
        await store.create(POD, {"metadata": {"name": "p", "ownerReferences": [reference]}})
        await store.create(CONFIG_MAP, named("gone"))
        await store.delete(CONFIG_MAP, "default", "gone")
        left = [*(await store.list(CUSTOM)).items, *(await store.list(POD)).items]
        database.close()
        return left

    async def second(before: list[Object]) -> None:
        store, database = opened(path)
        assert [*(await store.list(CUSTOM)).items, *(await store.list(POD)).items] == before
        assert not (await store.list(CONFIG_MAP)).items
        assert store.version == 4
        with pytest.raises(Gone):
            store.watch(POD, "3")
        made = await store.create(CONFIG_MAP, named("new"))
        assert made["metadata"]["resourceVersion"] == "5"
        await store.delete(CUSTOM, "", "owner")  # and what it owns with it
        assert not (await store.list(POD)).items
        database.close()

    asyncio.run(second(asyncio.run(first())))


def test_what_was_answered_survives_a_process_that_is_killed(tmp_path: Path) -> None:
    program = """
import asyncio, itertools, sys
from pathlib import Path
from vcjob.api.kinds import CONFIG_MAP
from vcjob.local.disk.database import Database
from vcjob.local.store import Store

async def main():
    store = Store(lambda: 0.0, disk=Database(Path(sys.argv[1])))
    for number in itertools.count():
        await store.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}})
        print(number, flush=True)

asyncio.run(main())
"""
    path = tmp_path / "objects"
    process = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(200):
        process.stdout.readline()
    process.kill()
    rest = [line for line in process.communicate()[0].splitlines(keepends=True) if b"\n" in line]
    answered = int(rest[-1]) if rest else 199
    _, database = opened(path)
    found = {name for _, (_, name), _ in database.objects()}
    assert found >= {f"c{number}" for number in range(answered + 1)}
    assert database.version == len(found)
    database.close()


def test_without_room_nothing_happens_and_with_room_again_it_goes_on(tmp_path: Path) -> None:
    # In a process of its own: the limit on the size of files holds for all that a process writes.
    program = """
import asyncio, json, resource, sys
from pathlib import Path
from vcjob.api.kinds import CONFIG_MAP
from vcjob.controller.cluster import StorageFailed
from vcjob.local.disk.database import Database
from vcjob.local.store import Store

async def main():
    database = Database(Path(sys.argv[1]))
    store = Store(lambda: 0.0, disk=database)
    watch = store.watch(CONFIG_MAP, "0")
    obj = {"data": {"a": "x" * 10_000}}
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    stored = 0
    try:
        while True:
            await store.create(CONFIG_MAP, {**obj, "metadata": {"name": f"c{stored}"}})
            stored += 1
    except StorageFailed as error:
        said = str(error)
    listed = len((await store.list(CONFIG_MAP)).items)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.create(CONFIG_MAP, {**obj, "metadata": {"name": "after"}})
    told = [(await anext(watch)).object["metadata"]["name"] for _ in range(stored + 1)]
    database.close()
    print(json.dumps([said, stored, listed, told]))

asyncio.run(main())
"""
    path = tmp_path / "objects"
    output = subprocess.run(
        [sys.executable, "-c", program, path], stdout=subprocess.PIPE, check=True
    ).stdout
    said, stored, listed, told = json.loads(output)
    assert "nothing was changed" in said
    assert str(tmp_path) in said
    assert stored == listed > 0
    assert told == [*(f"c{number}" for number in range(stored)), "after"]
    _, database = opened(path)
    assert sorted(name for _, (_, name), _ in database.objects()) == sorted(told)
    database.close()


def test_a_kind_that_could_not_be_stored_is_not_taken_for_known(tmp_path: Path) -> None:
    database = Database(tmp_path / "objects")
    write = Write(CUSTOM, ("", "x"), {"metadata": {}})
    database._connection.set_authorizer(_no_inserts)
    with pytest.raises(StorageFailed):
        database.write(1, [write])
    database._connection.set_authorizer(None)
    database.write(1, [write])
    database.close()
    again = Database(tmp_path / "objects")
    assert [kind for kind, _, _ in again.objects()] == [CUSTOM]
    again.close()


def _no_inserts(action: int, table: str | None, *_: object) -> int:
    refused = action == sqlite3.SQLITE_INSERT and table == "objects"
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        store, database = opened(tmp_path / "objects")
        with pytest.raises(Invalid):
            await store.create(CONFIG_MAP, named("c", data={"a": "\ud800"}))
        assert store.version == 0
        database.close()

    asyncio.run(story())


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = Database(tmp_path / "objects")
    with pytest.raises(StateUnusable, match="locked"):
        Database(tmp_path / "objects")
    first.close()


def test_a_file_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "objects"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StateUnusable, match="newer vcjob"):
        Database(path)
    assert path.read_bytes() == before


def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    path = tmp_path / "objects"
    path.write_bytes(b"something else" * 1000)
    with pytest.raises(StateUnusable, match="move it away"):
        Database(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StateUnusable, match="Is a directory"):
        Database(path)


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "objects")
    database.write(1, [Write(POD, ("default", "p"), {"metadata": {}})])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes.pop("objects") == 0o600
    assert set(modes.values()) == {0o600}
    database.close()
