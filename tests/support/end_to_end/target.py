"""The cluster that is tested, and what was said about it on the command line."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from end_to_end.facts import Facts
from end_to_end.recording import write
from end_to_end.world import World
from vcjob.api.kinds import CUSTOM_RESOURCE_DEFINITION, Kind, find_kind
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller.cluster import AlreadyExists, Unavailable
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.errors import NotServed
from vcjob.kubernetes.kubeconfig import read_kubeconfig

T = TypeVar("T")
Story = Callable[[World], Awaitable[T]]
"""What a test has happen in a namespace of its own."""

_STORY_SECONDS = 45.0
_DEFINITION_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Target:
    """A cluster by kubeconfig file and context.

    ``controller`` is whose behaviour is expected: that of ``vcjob`` or of ``volcano``. Where
    ``record`` is set, what is seen is written there.
    """

    config: Path
    context: str = ""
    controller: str = "vcjob"
    record: Path | None = None
    facts: Facts = field(default_factory=Facts)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The cluster as commands of vcjob are told it."""
        context = ("--context", self.context) if self.context else ()
        return ("--kubeconfig", str(self.config), *context)

    def cluster(self) -> KubernetesCluster:
        """A connection of its own, for one event loop."""
        return KubernetesCluster.of(read_kubeconfig((self.config,), self.context))

    def play(self, story: Story[T]) -> T:
        """Have a story happen in a namespace of its own, and return what it returns."""
        self.require_nodes()
        return asyncio.run(self.tell(story))

    async def tell(self, story: Story[T]) -> T:
        """As ``play``, beside other stories of the same event loop."""
        async with (
            self.cluster() as cluster,
            World.on(cluster, self.facts) as world,
        ):
            try:
                async with asyncio.timeout(_STORY_SECONDS):
                    return await story(world)
            except TimeoutError as error:
                raise AssertionError(f"waited in vain; {world.says()}") from error

    def require_nodes(self) -> None:
        """Skip the test where stories cannot happen: nodes that we play are somebody else's too."""
        if self.facts.others_play:
            pytest.skip(
                "somebody else plays every node here, and ends pods as it likes "
                "(kwok with --manage-all-nodes): stop that for as long as the tests run"
            )

    def save(self, name: str, seen: Object) -> None:
        """Write what was seen, if it is to be recorded."""
        if self.record:
            write(self.record / f"{name}.yaml", seen)


async def install_definitions(cluster: KubernetesCluster, definitions: list[Object]) -> None:
    """Create CustomResourceDefinitions, and wait until their kinds are served.

    Those that are there stay as they are.
    """
    for definition in definitions:
        name = definition["metadata"]["name"]
        try:
            await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition)
        except AlreadyExists:
            continue
        async with asyncio.timeout(_DEFINITION_SECONDS):
            async for _, there in changes(cluster, CUSTOM_RESOURCE_DEFINITION):
                if there["metadata"]["name"] == name and _is_established(there):
                    break
            await _until_served(cluster, find_kind(*_served_as(definition)))


def _is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _served_as(definition: Object) -> tuple[str, str]:
    """API version and kind of a definition's objects."""
    spec = definition["spec"]
    return f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"]


async def _until_served(cluster: KubernetesCluster, kind: Kind | None) -> None:
    """Wait until each part of the server knows a kind that is established."""
    assert kind
    while True:
        try:
            await cluster.list(kind)
        except (NotServed, Unavailable):  # its cache is being filled
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return
