"""What stays of a run: its objects, for nobody but the user."""

import asyncio
import json
import stat
import time
from pathlib import Path

from vcjob.api.kinds import POD
from vcjob.local.remains import write_objects
from vcjob.local.store import Store


def written(path: Path) -> list[str]:
    """Leave a store's objects in a file; returns the problems told."""
    problems: list[str] = []

    async def story() -> None:
        store = Store(time.time)
        spec = {"containers": [{"name": "c", "image": "none"}]}
        await store.create(POD, {"metadata": {"name": "p"}, "spec": spec})
        await write_objects(store, path, problems.append)

    asyncio.run(story())
    return problems


def test_objects_are_left_by_kind_and_seen_by_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    assert written(path) == []
    found = json.loads(path.read_text())
    assert {kind: len(objects) for kind, objects in found.items()} == {
        "jobs": 0, "pods": 1, "events": 0,
    }  # fmt: skip
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_takes_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no" / "objects.json"
    assert written(path) == [f"objects are not kept in {path}: No such file or directory"]
