"""Programs in containers, and ports, over WebSockets that answer well or badly."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from canned_server import Canned, canned_server

from vcjob.controller.cluster import Forbidden, Invalid, NotFound, Unavailable
from vcjob.kubernetes.connection import Connection
from vcjob.kubernetes.forwarding import forward
from vcjob.kubernetes.remote import STDERR, STDOUT, RemoteOptions, run_remotely

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
Channel = web.WebSocketResponse
Script = Callable[[Channel], Awaitable[None]]
SUCCESS = {"status": "Success"}


def ended(code: int) -> dict[str, Any]:
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}


def speak(canned: Canned, script: Script, *protocols: str) -> None:
    """Answer the next request as a WebSocket that follows a script."""

    async def handler(request: web.Request) -> web.StreamResponse:
        channel = web.WebSocketResponse(protocols=protocols)
        await channel.prepare(request)
        await script(channel)
        await channel.close()
        return channel

    canned.call(handler)


async def tell(channel: Channel, status: dict[str, Any]) -> None:
    await channel.send_bytes(b"\x03" + json.dumps(status).encode())


async def pieces(*all_of_them: bytes) -> AsyncIterator[bytes]:
    for piece in all_of_them:
        yield piece


def execute(
    script: Script,
    *protocols: str,
    stdin: AsyncIterator[bytes] | None = None,
    options: RemoteOptions = RemoteOptions("main", ("sh", "-c", "a b&c")),  # noqa: B008
) -> tuple[int, dict[int, bytes], Canned]:
    said = {STDOUT: b"", STDERR: b""}

    async def on_output(channel: int, content: bytes) -> None:
        said[channel] += content

    async def run() -> tuple[int, dict[int, bytes], Canned]:
        async with canned_server() as canned:
            speak(canned, script, *(protocols or (V5, V4)))
            async with Connection(canned.server(token="t")) as connection:
                code = await run_remotely(connection, "here", "p", options, on_output, stdin=stdin)
            return code, said, canned

    return asyncio.run(run())


def test_output_comes_by_channel_and_the_exit_code_at_the_end() -> None:
    async def script(channel: Channel) -> None:
        for message in (b"\x01", b"\x01out", b"\x02err", b"\x01more"):
            await channel.send_bytes(message)
        await tell(channel, ended(7))

    code, said, canned = execute(script)
    assert (code, said) == (7, {STDOUT: b"outmore", STDERR: b"err"})
    (asked,) = canned.asked
    assert asked.path == "/api/v1/namespaces/here/pods/p/exec"
    assert asked.query["container"] == "main"
    assert asked.query["stdin"] == "false"
    assert asked.headers["Authorization"] == "Bearer t"


def test_input_is_passed_on_in_pieces_and_its_end_is_told() -> None:
    got: list[bytes] = []

    async def script(channel: Channel) -> None:
        async for message in channel:
            got.append(message.data)
            if message.data == b"\xff\x00":
                break
        await tell(channel, SUCCESS)

    big = b"x" * 100_000
    code, _, _ = execute(script, stdin=pieces(b"one", big))
    assert code == 0
    assert got[0] == b"\x00one"
    assert b"".join(one[1:] for one in got[1:-1]) == big
    assert all(len(one) <= 65 * 1024 for one in got)


def test_an_older_server_is_spoken_to_in_its_version() -> None:
    async def script(channel: Channel) -> None:
        message = await channel.receive()
        assert message.data == b"\x00one"
        await tell(channel, SUCCESS)
        message = await channel.receive()
        assert message.type is WSMsgType.CLOSE, "version 4 knows no end of input"

    assert execute(script, V4, stdin=pieces(b"one"))[0] == 0


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"status": "Failure", "message": "no such file: sh"}, "no such file: sh"),
        ("plain words", "plain words"),
        (ended("many"), '"message": "many"'),  # type: ignore[arg-type]
    ],
)
def test_a_program_that_never_ran_is_said(status: Any, said: str) -> None:
    async def script(channel: Channel) -> None:
        if isinstance(status, str):
            await channel.send_bytes(b"\x03" + status.encode())
        else:
            await tell(channel, status)

    with pytest.raises(Invalid, match=said):
        execute(script)


def test_an_end_without_an_exit_code_is_no_success() -> None:
    async def script(channel: Channel) -> None:
        await channel.send_bytes(b"\x01out")

    with pytest.raises(Unavailable, match="how the program ended is not known"):
        execute(script)


def test_a_server_that_speaks_another_protocol_is_not_taken_at_its_word() -> None:
    async def script(channel: Channel) -> None:
        await tell(channel, SUCCESS)

    with pytest.raises(Unavailable, match="speaks none of the protocols"):
        execute(script, "channel.k8s.io")


def test_without_a_command_the_containers_own_program_is_attached_to() -> None:
    async def script(channel: Channel) -> None:
        await tell(channel, SUCCESS)

    _, _, canned = execute(script, options=RemoteOptions(tty=True))
    assert canned.asked[0].path.endswith("/attach")
    assert canned.asked[0].query == {
        "stdin": "false", "stdout": "true", "stderr": "false", "tty": "true",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "reason", "details", "expected"),
    [
        (404, "NotFound", {"name": "p"}, NotFound),
        (400, "BadRequest", {}, Invalid),
        (403, "Forbidden", {}, Forbidden),
    ],
)
def test_why_a_websocket_is_refused_is_told(
    status: int, reason: str, details: dict[str, Any], expected: type[Exception]
) -> None:
    async def on_output(channel: int, content: bytes) -> None:
        raise AssertionError("there is no output")

    async def run() -> None:
        async with canned_server() as canned:
            canned.refuse(status, reason, "container x is not valid for pod p", **details)
            async with Connection(canned.server()) as connection:
                with pytest.raises(expected, match="container x is not valid"):
                    await run_remotely(
                        connection, "here", "p", RemoteOptions("x", ("ls",)), on_output
                    )

    asyncio.run(run())


async def forwarded(
    script: Script, talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> BaseException | None:
    """Play one forwarded connection; returns what forwarding raised."""
    async with canned_server() as canned, Connection(canned.server()) as connection:
        speak(canned, script, V4)
        outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await forward(connection, "here", "p", 8080, reader, writer)
                outcome.set_result(None)
            except Exception as error:
                outcome.set_result(error)
            finally:
                writer.close()

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            await talk(reader, writer)
            writer.close()
            result = await outcome
        assert canned.asked[0].query == {"ports": "8080"}
        return result


PORT = (8080).to_bytes(2, "little")


def test_a_port_carries_data_both_ways_until_the_pod_ends_it() -> None:
    async def script(channel: Channel) -> None:
        await channel.send_bytes(b"\x00" + PORT)
        await channel.send_bytes(b"\x01" + PORT)
        message = await channel.receive()
        await channel.send_bytes(b"\x00" + message.data[1:].upper())

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        assert await reader.read() == b"HELLO"

    assert asyncio.run(forwarded(script, talk)) is None


def test_a_port_on_which_nothing_listens_is_an_error() -> None:
    async def script(channel: Channel) -> None:
        await channel.send_bytes(b"\x00" + PORT)
        await channel.send_bytes(b"\x01" + PORT + b"connection refused")
        await channel.receive()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""

    error = asyncio.run(forwarded(script, talk))
    assert isinstance(error, Unavailable)
    assert str(error) == "connection refused"


def test_what_a_pod_says_after_our_side_has_ended_still_comes() -> None:
    async def script(channel: Channel) -> None:
        await channel.send_bytes(b"\x00" + PORT)
        message = await channel.receive()
        await channel.send_bytes(b"\x00later " + message.data[1:])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.write_eof()
        assert await reader.read() == b"later bye"

    assert asyncio.run(forwarded(script, talk)) is None
