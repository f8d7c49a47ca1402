"""One run of a container as the node sees it: what it is given, and how it ended.

Whether and when there is another run is the container's business (``container.py``).
"""

import asyncio
import os

import msgspec

from vcjob.api.types import Object
from vcjob.local.agent.inside import Inside
from vcjob.local.agent.logs import ContainerLog
from vcjob.local.agent.pod_files import MOST_MESSAGE_BYTES
from vcjob.local.agent.podphase import Terminated
from vcjob.local.agent.starting import Start
from vcjob.local.agent.stdin import Stdin
from vcjob.local.agent.surroundings import Node, Surroundings
from vcjob.local.agent.terminal import Terminal
from vcjob.local.node.messages import ContainerExited


class Process(msgspec.Struct, eq=False):
    """One run of a container, from the request on."""

    run: str
    exited: "asyncio.Future[ContainerExited]"
    log: ContainerLog
    inside: Inside
    started_at: float
    starting: "asyncio.Task[None] | None" = None

    def close_stdin(self) -> None:
        """Nobody reads it any more. May be called twice."""
        if self.inside.stdin:
            self.inside.stdin.close()

    def ended(
        self, exited: ContainerExited, container: Object, now: float, written: str
    ) -> Terminated:
        """How it ended; ``written`` is the message that the program itself left in its file."""
        if not exited.started:
            message = self.log.termination_message().strip()
        else:
            message = written
            falls_back = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
            if not message and exited.exit_code and falls_back:
                message = self.log.termination_message()
            message = message[:MOST_MESSAGE_BYTES]
        return Terminated(exited.exit_code, _reason(exited), self.started_at, now, message)


def open_streams(
    around: Surroundings, pod: Object, container: Object, restarts: int
) -> tuple[ContainerLog, Stdin | Terminal | None]:
    """The log of a run, and its standard input or terminal if it has one; raises OSError."""
    metadata = pod["metadata"]
    log = around.logs.open(
        metadata["namespace"], metadata["name"], container["name"], restarts, metadata["uid"]
    )
    typed, terminal = bool(container.get("stdin")), bool(container.get("tty"))
    if not ((typed or terminal) and around.settings.attachable):
        return log, None
    try:
        if terminal:
            return log, Terminal(typed=typed)
        return log, Stdin(once=bool(container.get("stdinOnce")))
    except OSError:
        log.end()
        raise


async def request_start(
    node: Node, start: Start, log: ContainerLog, stdin: Stdin | Terminal | None
) -> None:
    """Have the node start a run with these streams; raises NodeRefused and NodeGone."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    given = stdin.given if stdin else null
    try:
        await node.start_container(start.request, given, log.writer, log.writer)
        if isinstance(stdin, Terminal):
            await stdin.started(log)
    finally:
        os.close(null)
        log.close_writer()
        if stdin:
            stdin.close_given()


def _reason(exited: ContainerExited) -> str:
    if not exited.started:
        return "StartError"
    if exited.out_of_memory:
        return "OOMKilled"
    return "Error" if exited.exit_code else "Completed"
