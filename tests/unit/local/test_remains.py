"""What stays of a run: its objects, for nobody but the user."""

import asyncio
import errno
import json
import os
import stat
import time
from pathlib import Path

import pytest

from vcjob.api.kinds import CONFIG_MAP, JOB, POD
from vcjob.local.remains import LastStates
from vcjob.local.store import Store


def written(path: Path) -> list[str]:
    """Leave a store's objects in a file; returns the problems told."""
    problems: list[str] = []
    last_states = LastStates()

    async def story() -> None:
        store = Store(time.time, disk=last_states)
        spec = {"containers": [{"name": "c", "image": "none"}]}
        job = await store.create(JOB, {"metadata": {"name": "j", "namespace": "ns"}, "spec": {}})
        owner = {"uid": job["metadata"]["uid"], "kind": "Job", "name": "j"}
        for attempt in ("first", "second"):
            metadata = {"name": "p", "namespace": "ns", "ownerReferences": [owner]}
            metadata["labels"] = {"attempt": attempt}
            await store.create(POD, {"metadata": metadata, "spec": spec})
            status = {"status": {"phase": "Failed"}}
            await store.patch(POD, "ns", "p", status, subresource="status")
            if attempt == "first":
                await store.delete(POD, "ns", "p")
        await store.create(POD, {"metadata": {"name": "other", "namespace": "ns"}, "spec": spec})
        await store.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "ns"}})
        await store.delete(JOB, "ns", "j")  # and with it the pod that is the Job's

    asyncio.run(story())
    last_states.leave(path, problems.append)
    return problems


def test_objects_are_left_by_kind_as_they_were_last_also_those_that_are_gone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "objects.json"
    assert written(path) == []
    found = json.loads(path.read_text())
    assert {kind: len(objects) for kind, objects in found.items()} == {
        "jobs": 1, "pods": 2, "events": 0,
    }  # fmt: skip
    [pod] = [pod for pod in found["pods"] if pod["metadata"]["name"] == "p"]
    assert (pod["metadata"]["labels"]["attempt"], pod["status"]["phase"]) == ("second", "Failed")


def test_what_is_left_is_seen_by_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    assert written(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_takes_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "no" / "objects.json"
    assert written(path) == [f"objects are not kept in {path}: No such file or directory"]


def test_a_disk_that_takes_half_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:9])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fill)
    path = tmp_path / "objects.json"
    assert written(path) == [f"objects are not kept in {path}: No space left on device"]
    assert not path.exists()
