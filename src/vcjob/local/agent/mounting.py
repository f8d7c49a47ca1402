"""The volumes of a pod: made once there is all that they show, and kept like it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from vcjob.api.kinds import Kind
from vcjob.api.types import Object
from vcjob.local.agent.surroundings import Surroundings
from vcjob.local.sandbox.paths import UnsafePath
from vcjob.local.volumes.objects import Find, MissingReference, VolumeRefused
from vcjob.local.volumes.pod_volumes import PodVolumes
from vcjob.local.volumes.shared import SharedFiles


class Mounting:
    """The volumes of one pod.

    Args:
        around: what there is around the pod.
        find: looks objects up in its namespace.
        shared: files that many pods see.
        tell: tells what keeps files from being as they should.
        lacks: tells what the pod cannot start without, too.
        in_background: lets something be done that nobody waits for.
    """

    def __init__(
        self,
        around: Surroundings,
        find: Find,
        shared: SharedFiles,
        tell: Callable[[str], Coroutine[Any, Any, None]],
        lacks: Callable[[str], Awaitable[None]],
        in_background: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._around = around
        self._find = find
        self._shared = shared
        self._tell = tell
        self._lacks = lacks
        self._in_background = in_background
        self._made: PodVolumes | None = None
        self._references: frozenset[tuple[Kind, str]] = frozenset()

    @property
    def volumes(self) -> PodVolumes:
        """The volumes, which have been made."""
        assert self._made is not None, "volumes come before containers"
        return self._made

    async def make(self, pod: Object, changed: asyncio.Event) -> None:
        """Make and mount them; until all is there that they show, wait for it to have changed.

        Raises VolumeRefused, UnsafePath, NodeRefused, NodeGone and OSError.
        """
        around = self._around
        directory = around.settings.pods / pod["metadata"]["uid"]
        volumes = PodVolumes(pod, str(directory), self._find, around.volumes, self._shared)
        told = ""
        while True:
            changed.clear()
            try:
                for mount in volumes.make(pod):
                    await around.node.mount(mount.target, mount.size)
                break
            except MissingReference as error:
                if str(error) != told:
                    told = str(error)
                    await self._lacks(told)
                await changed.wait()
        self._made, self._references = volumes, volumes.references

    def pod_changed(self, before: Object, pod: Object) -> None:
        """Let files that show the pod itself follow it."""
        if any(
            before["metadata"].get(field) != pod["metadata"].get(field)
            for field in ("labels", "annotations")
        ):
            self._update(pod)

    def object_changed(self, kind: Kind, name: str, pod: Object) -> None:
        """Let files that show another object follow that."""
        if (kind, name) in self._references:
            self._update(pod)

    def _update(self, pod: Object) -> None:
        if self._made is None:
            return
        try:
            self._made.update(pod)
        except MissingReference:
            pass  # what is missing now leaves the files as they are, as kubelet does
        except (VolumeRefused, UnsafePath) as error:  # a full disk, for example
            message = f"files do not follow a change: {error}"
            self._in_background(self._tell(message))
