"""``vcjob port-forward``: ports of a pod, here."""

import asyncio
import contextlib

import click
import msgspec

from vcjob.api.problems import printable
from vcjob.api.types import Object
from vcjob.cli.exit_codes import ExitCode
from vcjob.cli.selection import Reference, ReferenceType, find_pod
from vcjob.cli.target import Target, on_target
from vcjob.controller.cluster import ClusterError, NotFound
from vcjob.controller.os_errors import words_of

_HIGHEST_PORT = 65535


class _Ports(msgspec.Struct, frozen=True):
    """``local`` 0: any free port. ``remote`` is a number or a container port's name."""

    local: int
    remote: str


class _PortsType(click.ParamType[_Ports]):
    name = "[LOCAL:]PORT"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Ports:
        local, colon, remote = value.rpartition(":")
        if not colon:
            local = remote if remote.isdecimal() else "0"
        local = local or "0"
        numbers = [local, *([remote] if remote.isdecimal() else [])]
        is_no_port = not remote or (remote.isdecimal() and int(remote) == 0)
        if is_no_port or any(not n.isdecimal() or int(n) > _HIGHEST_PORT for n in numbers):
            self.fail(f"{value!r} is not PORT, LOCAL:PORT or :PORT, e.g. 8080:80", param, ctx)
        return _Ports(int(local), remote)


@click.command()
@click.argument("reference", type=ReferenceType(), metavar="JOB/POD")
@click.argument("ports", nargs=-1, required=True, type=_PortsType(), metavar="[LOCAL:]PORT...")
@click.option("--address", default="127.0.0.1", show_default=True,
              help="The address of this machine to listen on.")  # fmt: skip
@on_target
async def port_forward(
    target: Target, reference: Reference, ports: tuple[_Ports, ...], address: str
) -> int:
    """Carry connections to ports of this machine to a pod, until interrupted.

    PORT is the pod's: a number, or the name of a container's port. LOCAL is this machine's: the
    same number if it is left out, any free one for ":PORT" and for a name.
    """
    pod = await find_pod(target, reference)
    async with contextlib.AsyncExitStack() as stack:
        gone = asyncio.Event()
        for pair in ports:
            remote = _number(pod, pair.remote)
            server = await _listen(target, pod, address, pair.local, remote, gone)
            await stack.enter_async_context(server)
            for listening in server.sockets:
                host, number = listening.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                click.echo(f"Forwarding from {shown}:{number} -> {reference}:{remote}")
        await gone.wait()
    click.echo(f"vcjob: the pod {reference} is gone", err=True)
    return ExitCode.FAILED


def _number(pod: Object, port: str) -> int:
    if port.isdecimal():
        return int(port)
    named = {
        one["name"]: one["containerPort"]
        for container in pod["spec"]["containers"]
        for one in container.get("ports") or ()
        if one.get("name")
    }
    if port not in named:
        raise click.UsageError(
            f'the pod has no port called "{port}"; there are: {", ".join(sorted(named)) or "none"}'
        )
    return int(named[port])


async def _listen(
    target: Target, pod: Object, address: str, local: int, remote: int, gone: asyncio.Event
) -> asyncio.Server:
    from vcjob.kubernetes.forwarding import forward

    metadata = pod["metadata"]

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = target.cluster.connection
        try:
            await forward(
                connection, metadata["namespace"], metadata["name"], remote, reader, writer
            )
        except NotFound:
            gone.set()
        except ClusterError as error:  # of one connection; others may go on
            click.echo(f"vcjob: port {remote}: {printable(str(error))}", err=True)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    try:
        return await asyncio.start_server(carry, address, local)
    except OSError as error:
        raise click.UsageError(
            f"cannot listen on {address}:{local}: {words_of(error)}; "
            "choose another port: LOCAL:PORT"
        ) from error
