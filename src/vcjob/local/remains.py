"""What stays of a run when it has ended, and what does not."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vcjob.api.kinds import EVENT, JOB, POD, Kind
from vcjob.api.types import Key, Object
from vcjob.local.node.client import NodeClient
from vcjob.local.objects import Write
from vcjob.local.sandbox.paths import remove_tree

_KEPT_KINDS = (JOB, POD, EVENT)


class LastStates:
    """A ``Disk`` that remembers Jobs, pods and Events of a run as they were last.

    A Job that ends takes pods away, and its time to live takes the Job: what somebody wants to read
    afterwards is no longer among the objects. Of several objects of one name it is the latest.
    """

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Key, Object]] = {kind: {} for kind in _KEPT_KINDS}

    def write(self, version: int, writes: Sequence[Write]) -> list[int]:
        """Remember what becomes of objects; what is gone stays as it was. Takes no room on disk."""
        for kind, key, obj in writes:
            if obj is not None and kind in self._objects:
                self._objects[kind][key] = obj
        return [0] * len(writes)

    def leave(self, path: Path, on_problem: Callable[[str], None]) -> None:
        """Leave the objects readable in a file; a disk that takes it not is told of."""
        objects: dict[str, Any] = {
            kind.plural: list(known.values()) for kind, known in self._objects.items()
        }
        try:
            _write_private(path, msgspec.json.encode(objects))
        except OSError as error:
            on_problem(f"objects are not kept in {path}: {error.strerror}")
            with contextlib.suppress(OSError):
                path.unlink()  # half of them is no JSON


async def remove_files(directories: Sequence[Path], node: NodeClient) -> None:
    """Remove directories with files of pods; raises NodeRefused, NodeGone and OSError.

    An ordinary user's node does it, to which the numbers of the pods' users belong.
    """
    if os.geteuid() != 0:
        await node.remove_pod("", [str(path) for path in directories])
        return
    for path in directories:
        await asyncio.to_thread(remove_tree, str(path))


def _write_private(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
