"""What the agent works with: doors to the rest of the engine, and settings."""

import signal
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from vcjob.api.types import Object
from vcjob.controller.clock import Clock
from vcjob.controller.cluster import Cluster
from vcjob.local.agent.logs import Logs
from vcjob.local.node.client import Entry
from vcjob.local.node.messages import ContainerExited, StartContainer
from vcjob.local.sandbox.machine import Machine
from vcjob.local.volumes.pod_volumes import VolumeWorld


class Node(Protocol):
    """What the agent asks of the node process (``NodeClient``, which says what is raised)."""

    on_exit: Callable[[ContainerExited], None]

    async def remove_pod(self, uid: str, directories: Iterable[str] = ()) -> None:
        """Kill what runs in a pod, release it, remove its directories."""

    async def start_container(
        self, request: StartContainer, stdin: int, stdout: int, stderr: int
    ) -> None:
        """Start a container."""

    async def enter(
        self,
        container: str,
        command: Sequence[str],
        stdin: int,
        stdout: int,
        stderr: int,
        *,
        environment: Mapping[str, str],
        directory: str = "/",
        terminal: bool = False,
    ) -> Entry:
        """Start a program inside a running container."""

    async def signal_entry(self, entry: Entry, number: signal.Signals) -> None:
        """Send a signal to a program inside a container."""

    async def signal(self, container: str, number: signal.Signals) -> None:
        """Send a signal to a container."""

    async def mount(self, target: str, size: int = 0) -> None:
        """Mount a tmpfs."""

    async def open_socket(self, pod: str = "") -> socket.socket:
        """A socket in the node's network."""


class PodNetwork(Protocol):
    """The pods' network (``local/networking.py``)."""

    async def join(self, pod: Object) -> str:
        """Give a pod its network; returns its address."""

    async def leave(self, pod: Object) -> None:
        """Forget a pod whose network is gone."""

    def tell_names(self, pod: Object) -> None:
        """Let names follow a pod's status."""


class AgentSettings(msgspec.Struct, frozen=True):
    """How the agent works.

    ``pods`` is where pods' files are kept, ``keep`` leaves them there after their pod.
    ``attachable``: clients can attach to containers, which get a standard input if they ask for it.
    ``process_limit`` bounds a container's processes and threads. ``back_off_seconds`` and
    ``longest_back_off_seconds`` are those of containers that end again and again. As many pods as
    ``starts_at_once`` are set up in parallel.
    """

    node_name: str
    node_address: str
    pods: Path
    keep: bool = False
    attachable: bool = False
    process_limit: int = 32768
    back_off_seconds: float = 10.0
    longest_back_off_seconds: float = 300.0
    starts_at_once: int = 16


class Surroundings(msgspec.Struct, frozen=True):
    """Everything around the agent."""

    cluster: Cluster
    node: Node
    network: PodNetwork
    logs: Logs
    machine: Machine
    volumes: VolumeWorld
    clock: Clock
    settings: AgentSettings


Tell = Callable[[str, str, str], Coroutine[Any, Any, None]]
"""Tells an Event on the pod: type (Normal or Warning), reason, message."""
