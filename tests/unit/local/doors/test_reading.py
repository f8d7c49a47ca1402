"""Parts of output, out of files that are written meanwhile."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.logs import ContainerLog, Logs
from vcjob.local.doors.reading import Part, output, rfc3339

_SECOND = 1_000_000_000


class _World:
    """Logs whose clock is a second later with each write."""

    def __init__(self, directory: Path, **limits: int) -> None:
        self.now = 0
        files = LogFiles(str(directory), pytest.fail, clock=self._tick, **limits)
        self.logs = Logs(files, lambda *said: None)
        self.path = files.path("ns", "pod", "main", 0)

    def _tick(self) -> int:
        self.now += _SECOND
        return self.now

    def write(self, *pieces: bytes, uid: str = "u") -> None:
        for piece in pieces:
            self.logs.files.append(self.path, piece, uid)

    def open(self, uid: str = "u") -> ContainerLog:
        return self.logs.open("ns", "pod", "main", 0, uid)

    async def read(self, part: Part, uid: str = "u") -> bytes:
        return b"".join([piece async for piece in output(self.logs, self.path, uid, part)])

    def part(self, **part: object) -> bytes:
        return asyncio.run(self.read(Part(**part)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, b"one\ntwo\nthree\nfour"),
        ({"tail": 0}, b""),
        ({"tail": 1}, b"four"),
        ({"tail": 2}, b"three\nfour"),
        ({"tail": 9}, b"one\ntwo\nthree\nfour"),
        ({"since": 2 * _SECOND}, b"three\nfour"),  # "two" began before
        ({"since": 3 * _SECOND}, b"four"),
        ({"since": 4 * _SECOND}, b""),
        ({"since": 2 * _SECOND, "tail": 1}, b"four"),
        ({"since": 3 * _SECOND, "tail": 3}, b"four"),
        ({"new_only": True}, b""),
    ],
)
def test_a_part_of_the_lines(tmp_path: Path, part: dict[str, object], expected: bytes) -> None:
    world = _World(tmp_path)
    world.write(b"one\ntw", b"o\nthree\n", b"four")
    assert world.part(**part) == expected


def test_each_line_has_the_time_at_which_it_began(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.write(b"one\ntw", b"o\n\n", b"four\n")
    assert world.part(timestamps=True).decode().splitlines() == [
        "1970-01-01T00:00:01.000000000Z one",
        "1970-01-01T00:00:01.000000000Z two",
        "1970-01-01T00:00:02.000000000Z ",
        "1970-01-01T00:00:03.000000000Z four",
    ]
    assert rfc3339(1_700_000_000_000_000_042) == "2023-11-14T22:13:20.000000042Z"


def test_a_pod_has_nothing_of_one_that_had_its_name(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.write(b"old\n", uid="before")
    world.write(b"new\n", b"newer\n")
    for tail in (None, 9):
        assert world.part(tail=tail) == b"new\nnewer\n"
    assert asyncio.run(world.read(Part(), "before")) == b"old\n"
    assert asyncio.run(world.read(Part(), "another")) == b""


def test_lines_go_on_from_the_file_that_was_set_aside(tmp_path: Path) -> None:
    world = _World(tmp_path, file_limit=100)
    world.write(*(b"line %d\n" % number for number in range(20)))
    text = world.part()
    assert Path(f"{world.path}.1").exists()
    lines = text.split(b"\n")[:-1]
    assert lines == [b"line %d" % number for number in range(20 - len(lines), 20)]
    assert len(lines) > 5
    for tail in range(len(lines) + 1):
        assert world.part(tail=tail) == b"".join(b"%s\n" % one for one in lines[-tail or 99 :])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"x", b"\n")), max_size=12),
    st.integers(0, 8),
)
def test_the_last_lines_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], tail: int
) -> None:
    world = _World(tmp_path_factory.mktemp("logs"))
    world.write(*(piece for piece in pieces if piece))
    lines = b"".join(pieces).split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    assert world.part(tail=tail) == b"".join(whole[len(whole) - min(tail, len(whole)) :])


def _followed(
    world: _World, steps: list[Callable[[], None]], part: Part, uid: str = "u"
) -> list[bytes]:
    """What a follower gets while steps are done, each once it waits; then the container ends."""

    async def run() -> list[bytes]:
        log = world.open(uid)

        async def follow() -> list[bytes]:
            return [piece async for piece in output(world.logs, world.path, uid, part)]

        following = asyncio.create_task(follow())
        for step in steps:
            for _ in range(10):
                await asyncio.sleep(0)
            step()
            if log._growing:
                log._tell_readers()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not following.done()
        log.end()
        return await following

    return asyncio.run(run())


def test_a_follower_gets_what_is_there_and_what_comes(tmp_path: Path) -> None:
    world = _World(tmp_path)
    world.write(b"there\n")
    steps = [
        lambda: world.write(b"more\n"),
        lambda: world.write(b"mo"),
        lambda: world.write(b"st\n"),
    ]
    assert _followed(world, steps, Part(follow=True)) == [b"there\n", b"more\n", b"mo", b"st\n"]
    assert _followed(world, steps[:1], Part(follow=True, new_only=True)) == [b"more\n"]


def test_a_follower_is_there_before_the_file(tmp_path: Path) -> None:
    world = _World(tmp_path)
    steps = [lambda: world.write(b"first\n")]
    for part in (Part(follow=True), Part(follow=True, new_only=True)):
        assert _followed(world, steps, part)[-1] == b"first\n"


def test_a_follower_goes_on_when_files_are_set_aside(tmp_path: Path) -> None:
    world = _World(tmp_path, file_limit=60)
    numbers = iter(range(100))

    def write() -> None:
        world.write(*(b"line %d\n" % next(numbers) for _ in range(4)))

    text = b"".join(_followed(world, [write] * 10, Part(follow=True)))
    assert text == b"".join(b"line %d\n" % number for number in range(40))


def test_the_end_of_the_container_ends_it_with_its_last_words(tmp_path: Path) -> None:
    async def run() -> bytes:
        world = _World(tmp_path)
        log = world.open()
        following = asyncio.create_task(world.read(Part(follow=True)))
        await asyncio.sleep(0)
        os.write(log.writer, b"last words\n")
        await log.finished()
        return await following

    assert asyncio.run(run()) == b"last words\n"


def test_no_descriptor_stays_of_a_reader_that_goes(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    world = _World(tmp_path)
    world.write(b"x" * 200_000)

    async def run() -> None:
        log = world.open()
        reading = asyncio.create_task(world.read(Part(follow=True)))
        for _ in range(20):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        log.end()

    asyncio.run(run())
    assert len(os.listdir("/proc/self/fd")) == before
