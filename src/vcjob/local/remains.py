"""What stays of a run when it has ended, and what does not."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vcjob.api.kinds import EVENT, JOB, POD
from vcjob.controller.cluster import Cluster
from vcjob.local.node.client import NodeClient
from vcjob.local.sandbox.paths import remove_tree


async def write_objects(cluster: Cluster, path: Path, on_problem: Callable[[str], None]) -> None:
    """Leave Jobs, pods and Events readable in a file; a disk that takes it not is told of."""
    objects: dict[str, Any] = {
        kind.plural: (await cluster.list(kind)).items for kind in (JOB, POD, EVENT)
    }
    try:
        _write_private(path, msgspec.json.encode(objects))
    except OSError as error:
        on_problem(f"objects are not kept in {path}: {error.strerror}")


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
