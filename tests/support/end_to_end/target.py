"""The cluster that is tested, and what was said about it on the command line."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from end_to_end.recording import write
from end_to_end.world import Facts, World
from vcjob.api.kinds import CUSTOM_RESOURCE_DEFINITION, POD_GROUP, QUEUE, SERVICE_ACCOUNT, Kind
from vcjob.api.types import Object
from vcjob.cli.following import changes
from vcjob.controller.cluster import AlreadyExists, NotFound
from vcjob.kubernetes.cluster import KubernetesCluster
from vcjob.kubernetes.errors import NotServed
from vcjob.kubernetes.kubeconfig import read_kubeconfig

T = TypeVar("T")
Story = Callable[[World], Awaitable[T]]
"""What a test has happen in a namespace of its own."""

_STORY_SECONDS = 45.0
_QUEUE_SECONDS = 30.0
_SCHEDULERS_TURN_SECONDS = 5.0
"""How long a scheduler may take to say something about a PodGroup; Volcano's takes one."""
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")


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
        listed = await cluster.list(CUSTOM_RESOURCE_DEFINITION)
        if any(one["metadata"]["name"] == name and _is_served(one) for one in listed.items):
            continue
        async for event in cluster.watch(CUSTOM_RESOURCE_DEFINITION, listed.resource_version):
            if event.object["metadata"]["name"] == name and _is_served(event.object):
                break


def _is_served(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def ask(bare: Target, *, seeks_scheduler: bool) -> Target:
    """The target with what is found out by asking its server, if told so about its scheduler."""
    async with bare.cluster() as cluster:
        name = f"{POD_GROUP.plural}.{POD_GROUP.group}"
        groups = await cluster.get(CUSTOM_RESOURCE_DEFINITION, "", name)
        [version] = [v for v in groups["spec"]["versions"] if v["name"] == POD_GROUP.version]
        facts = Facts(
            group_status="status" in (version.get("subresources") or {}),
            quotas=await _is_there(cluster.list(RESOURCE_QUOTA, "default")),
            accounts=await _is_there(cluster.get(SERVICE_ACCOUNT, "default", "default")),
            scheduler=seeks_scheduler and await _has_scheduler(cluster),
        )
        return replace(bare, facts=facts)


async def wait_for_queue(target: Target) -> None:
    """Wait until there is the Queue that every Job is in which names none."""
    async with target.cluster() as cluster, asyncio.timeout(_QUEUE_SECONDS):
        async for _, queue in changes(cluster, QUEUE):
            if queue["metadata"]["name"] == "default":
                return


async def _is_there(asking: Awaitable[object]) -> bool:
    try:
        await asking
    except (NotServed, NotFound):
        return False
    return True


async def _has_scheduler(cluster: KubernetesCluster) -> bool:
    """Whether somebody says something about a PodGroup that nothing stands in the way of."""
    metadata = {"generateName": "is-there-a-scheduler-", "namespace": "default"}
    made = await cluster.create(
        POD_GROUP, {"metadata": metadata, "spec": {"minMember": 1, "queue": "default"}}
    )
    try:
        async with asyncio.timeout(_SCHEDULERS_TURN_SECONDS):
            since = made["metadata"]["resourceVersion"]
            async for event in cluster.watch(POD_GROUP, since, "default"):
                group = event.object
                ours = group["metadata"].get("uid") == made["metadata"]["uid"]
                if ours and (group.get("status") or {}).get("phase"):
                    return True
    except TimeoutError:
        return False
    finally:
        await cluster.delete(POD_GROUP, "default", made["metadata"]["name"])
    return False
