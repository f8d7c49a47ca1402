"""Clients that are many, slow, gone or not clients at all: others do not notice."""

import asyncio
import gzip
import logging

import aiohttp
import pytest
from served import MAPS, TOKEN, config_map, served

from vcjob.local.apiserver import bodies, watching

WATCHES = 1000
MEGABYTE = 1 << 20
HEAD = f"HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\nAuthorization: Bearer {TOKEN}\r\n"
# What is sent before the client hangs up.
BROKEN = {
    "no HTTP": b"\x00\x01\x02\r\n\r\n",
    "TLS where there is none": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a control character in a header": f"GET {MAPS} {HEAD}X: \x00\r\n\r\n".encode(),
    "half a head": f"GET {MAPS} HT".encode(),
    "half a body": f"POST {MAPS} {HEAD}Content-Length: 1000\r\n\r\n{{".encode(),
    "a wrong chunk": f"POST {MAPS} {HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    "two lengths": f"POST {MAPS} {HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}".encode(),
    "a length that is none": f"POST {MAPS} {HEAD}Content-Length: -5\r\n\r\n".encode(),
    "endless header": f"GET {MAPS} {HEAD}X: {'x' * 100_000}".encode(),
    "a list that nobody reads": f"GET {MAPS} {HEAD}\r\n".encode(),
    "a watch that nobody reads": f"GET {MAPS}?watch=1 {HEAD}\r\n".encode(),
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN.keys())
def test_whatever_a_client_sends_before_it_vanishes_others_are_answered(sent, caplog):
    caplog.set_level(logging.WARNING)

    async def scenario():
        async with served() as ask:
            await ask.made(MAPS, *(config_map(f"m-{n}", x="y" * 1_000_000) for n in range(5)))
            for _ in range(3):
                _, writer = await asyncio.open_connection("127.0.0.1", ask.server.port)
                writer.write(sent.replace(b"{port}", str(ask.server.port).encode()))
                await writer.drain()
                writer.transport.abort()
            listed = await ask("GET", MAPS, limit="1")
            return listed.code, len(listed.body["items"])

    assert asyncio.run(scenario()) == (200, 1)
    assert not caplog.records  # clients cannot fill the engine's log


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "other"])
def test_a_compressed_body_is_refused_unread(encoding):
    async def scenario():
        async with served() as ask:
            refused = await ask(
                "POST", MAPS, gzip.compress(b"{}"), headers={"Content-Encoding": encoding}
            )
            return refused, await ask("POST", MAPS, config_map("a"))

    refused, taken = asyncio.run(scenario())

    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")
    assert taken.code == 201


@pytest.mark.parametrize(
    ("expected", "length", "line"),
    [
        ("100-continue", 31, b"HTTP/1.1 100 Continue\r\n"),
        ("100-continue", 4_000_000, b"HTTP/1.1 413 Request Entity Too Large\r\n"),
        ("miracles", 31, b"HTTP/1.1 417 Expectation Failed\r\n"),
    ],
)
def test_a_client_that_asks_first_is_told_whether_to_send(expected, length, line):
    body = b'{"metadata": {"name": "asked"}}'[:length]

    async def scenario():
        async with served() as ask:
            reader, writer = await asyncio.open_connection("127.0.0.1", ask.server.port)
            size = max(length, len(body))
            more = f"Content-Length: {size}\r\nExpect: {expected}\r\n\r\n"
            writer.write(f"POST {MAPS} {HEAD}{more}".format(port=ask.server.port).encode())
            first = await reader.readline()
            if first == b"HTTP/1.1 100 Continue\r\n":
                await reader.readline()
                writer.write(body)
                assert (await reader.readline()).startswith(b"HTTP/1.1 201 ")
            writer.close()
            return first

    assert asyncio.run(scenario()) == line


@pytest.mark.parametrize("rest", [b"", b"zz\r\n"], ids=["nothing", "no chunk"])
def test_a_body_that_does_not_end_is_not_waited_for(rest, monkeypatch):
    monkeypatch.setattr(bodies, "_SLOWEST_SENDER", 0.1)

    async def scenario():
        async with served() as ask:
            reader, writer = await asyncio.open_connection("127.0.0.1", ask.server.port)
            head = f"POST {MAPS} {HEAD}Transfer-Encoding: chunked\r\n\r\n"
            writer.write(head.format(port=ask.server.port).encode() + b"1\r\n{\r\n")
            await writer.drain()
            await ask("GET", MAPS)  # the server reads the body by now
            writer.write(rest)
            answer = await reader.readline()
            writer.close()
            return answer

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 408 ")


def test_a_thousand_watches_at_once_are_told_what_happens():
    async def scenario():
        async with (
            served() as ask,
            aiohttp.ClientSession(
                headers=ask.session.headers, connector=aiohttp.TCPConnector(limit=0)
            ) as session,
        ):
            ask.session = session
            begun = asyncio.Semaphore(0)

            async def watch():
                async with ask.watching(MAPS) as events:
                    begun.release()
                    return [(await events.next())[1]["metadata"]["name"] for _ in range(2)]

            watches = [asyncio.create_task(watch()) for _ in range(WATCHES)]
            for _ in watches:
                await begun.acquire()
            await ask.made(MAPS, config_map("a"), config_map("b"))
            return await asyncio.gather(*watches)

    assert asyncio.run(scenario()) == [["a", "b"]] * WATCHES


def test_what_waits_for_slow_readers_is_bounded(monkeypatch):
    transports = []
    stuck = asyncio.Semaphore(0)
    write = watching._Stream._write

    async def noticed(stream, event):
        writing = asyncio.create_task(write(stream, event))
        if not (await asyncio.wait([writing], timeout=0.2))[0]:
            transports.append(stream._request.transport)
            stuck.release()
        await writing

    monkeypatch.setattr(watching._Stream, "_write", noticed)

    async def scenario():
        async with served() as ask:
            readers = [await ask.session.get(ask.url + MAPS, params={"watch": "1"}) for _ in "ab"]
            await ask.made(MAPS, *(config_map(f"m-{n}", x="y" * MEGABYTE) for n in range(30)))
            for _ in readers:
                await stuck.acquire()
            waiting = [transport.get_write_buffer_size() for transport in transports]
            for reader in readers:
                reader.close()
            return waiting

    for waiting in asyncio.run(scenario()):
        assert 0 < waiting < 3 * MEGABYTE  # of 30
