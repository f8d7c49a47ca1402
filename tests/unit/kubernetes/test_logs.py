"""Logs: the query, and lines out of pieces."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from canned_server import canned_server
from hypothesis import given
from hypothesis import strategies as st

from vcjob.controller.cluster import Invalid, Unavailable
from vcjob.kubernetes.connection import Connection
from vcjob.kubernetes.lines import lines
from vcjob.kubernetes.logs import LogOptions, log_lines


async def some(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@given(st.lists(st.binary(max_size=9).map(lambda raw: raw.replace(b"a", b"\n"))))
def test_lines_do_not_depend_on_how_the_stream_is_cut(pieces: list[bytes]) -> None:
    async def run() -> list[bytes]:
        return [line async for line in lines(some(pieces))]

    expected = b"".join(pieces).split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert asyncio.run(run()) == expected


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (LogOptions(), {}),
        (LogOptions("main", follow=True, tail=0), {
            "container": "main", "follow": "true", "tailLines": "0"}),
        (LogOptions(since_seconds=5, previous=True, timestamps=True, limit_bytes=9), {
            "sinceSeconds": "5", "previous": "true", "timestamps": "true", "limitBytes": "9"}),
        (LogOptions(since_time="2026-01-01T00:00:00Z"), {"sinceTime": "2026-01-01T00:00:00Z"}),
    ],
)  # fmt: skip
def test_options_are_asked_for(options: LogOptions, query: dict[str, str]) -> None:
    async def run() -> None:
        async with canned_server() as canned, Connection(canned.server()) as connection:
            canned.stream(b"one\ntw", b"o\n\nthree")
            async with log_lines(connection, "here", "p", options) as found:
                assert [line async for line in found] == [b"one", b"two", b"", b"three"]
            assert canned.asked[0].path == "/api/v1/namespaces/here/pods/p/log"
            assert canned.asked[0].query == query

    asyncio.run(run())


def test_a_stream_that_breaks_is_told_from_one_that_ends() -> None:
    async def run() -> None:
        async with canned_server() as canned, Connection(canned.server()) as connection:
            read = asyncio.Event()
            canned.stream(b"one\n", cut=read)
            got = []

            async def read_all() -> None:
                async with log_lines(connection, "here", "p", LogOptions()) as found:
                    async for line in found:
                        got.append(line)
                        read.set()

            with pytest.raises(Unavailable, match="broke"):
                await read_all()
            assert got == [b"one"]
            canned.refuse(400, "BadRequest", 'container "main" is waiting to start')
            with pytest.raises(Invalid, match="waiting to start"):
                async with log_lines(connection, "here", "p", LogOptions()):
                    raise AssertionError("there is nothing to read")

    asyncio.run(run())
