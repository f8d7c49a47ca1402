import asyncio
import os
import stat
from pathlib import Path

import pytest

from vcjob.local.agent.log_files import LogFiles
from vcjob.local.agent.logs import Logs


class _World:
    """Logs in a directory, with everything that they tell."""

    def __init__(self, directory: Path, **limits: int) -> None:
        self.problems: list[str] = []
        self.lines: list[bytes] = []
        self.files = LogFiles(str(directory), self.problems.append, **limits)
        self.logs = Logs(self.files, lambda *said: self.lines.append(b"/".join(_bytes(said))))


def _bytes(parts: tuple[str | bytes, ...]) -> list[bytes]:
    return [part.encode() if isinstance(part, str) else part for part in parts]


def _output(world: _World, data: bytes) -> bytes:
    """What a container that writes ``data`` and exits leaves as its tail."""

    async def run() -> bytes:
        log = world.logs.open("ns", "pod", "main", 0)
        container = os.dup(log.writer)
        log.close_writer()
        await asyncio.to_thread(_write, container, data)
        await log.finished()
        return log.tail()

    return asyncio.run(run())


def _write(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb", buffering=0) as pipe:
        view = memoryview(data)
        while view:
            view = view[pipe.write(view) :]


def test_output_goes_to_the_file_and_line_by_line_to_the_listener(tmp_path: Path) -> None:
    world = _World(tmp_path)
    _output(world, b"one\n\ntwo")
    path = tmp_path / "ns_pod" / "main" / "0.log"
    assert path.read_bytes() == b"one\n\ntwo"
    assert world.lines == [b"ns/pod/main/one", b"ns/pod/main/", b"ns/pod/main/two"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in path.parents[:2]:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_more_than_a_pipe_holds_comes_whole_and_in_order(tmp_path: Path) -> None:
    world = _World(tmp_path)
    data = b"".join(b"%d\n" % number for number in range(100_000))
    tail = _output(world, data)
    assert (tmp_path / "ns_pod/main/0.log").read_bytes() == data
    assert [line.rpartition(b"/")[2] for line in world.lines] == data.split()
    assert tail == data[-4096:]


def test_a_line_without_end_comes_in_pieces_and_is_kept_as_it_was(tmp_path: Path) -> None:
    world = _World(tmp_path)
    _output(world, b"x" * 40_000)
    assert [len(line) - len("ns/pod/main/") for line in world.lines] == [16384, 16384, 7232]
    assert (tmp_path / "ns_pod/main/0.log").stat().st_size == 40_000


def test_a_grandchild_that_holds_the_pipe_delays_no_end(tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        world = _World(tmp_path)
        log = world.logs.open("ns", "pod", "main", 0)
        held = os.dup(log.writer)
        try:
            os.write(held, b"last words")
            await log.finished(patience=0.01)
        finally:
            os.close(held)
        return world.lines

    assert asyncio.run(run()) == [b"ns/pod/main/last words"]


def test_paused_pipes_fill_and_nothing_is_lost(tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        world = _World(tmp_path)
        log = world.logs.open("ns", "pod", "main", 0)
        world.logs.pause()
        os.write(log.writer, b"a\n")
        ending = asyncio.create_task(log.finished(patience=0.0))
        for _ in range(5):
            await asyncio.sleep(0)
        assert world.lines == []
        assert not ending.done()
        world.logs.resume()
        await ending
        return world.lines

    assert asyncio.run(run()) == [b"ns/pod/main/a"]


def test_a_full_disk_is_told_once_and_the_output_is_shown_all_the_same(tmp_path: Path) -> None:
    world = _World(tmp_path)
    folder = tmp_path / "ns_pod" / "main"
    folder.mkdir(parents=True)
    (folder / "0.log").symlink_to("/dev/full")
    _output(world, b"".join(b"%d\n" % number for number in range(50_000)))
    assert len(world.lines) == 50_000
    assert [problem.count("No space left on device") for problem in world.problems] == [1]


def test_the_termination_message_is_the_last_80_lines_of_2048_bytes(tmp_path: Path) -> None:
    async def run() -> tuple[str, str]:
        said = []
        for number, data in enumerate((b"l\n" * 100, b"x" * 3000)):
            log = _World(tmp_path).logs.open("ns", "pod", "main", number)
            os.write(log.writer, data)
            await log.finished()
            said.append(log.termination_message())
        return said[0], said[1]

    assert asyncio.run(run()) == ("l\n" * 80, "x" * 2048)


def test_no_descriptor_stays(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    world = _World(tmp_path)
    _output(world, b"x\n")

    async def abandoned() -> None:
        world.logs.open("ns", "pod", "main", 1)
        world.logs.close()

    asyncio.run(abandoned())
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_terminal_takes_the_place_of_the_pipe_until_no_program_has_it_open(
    tmp_path: Path,
) -> None:
    async def run() -> bytes:
        logs = Logs(LogFiles(str(tmp_path), pytest.fail), lambda *said: None)
        log = logs.open("default", "p", "main", 0)
        master, slave = os.openpty()
        log.take_terminal(master)
        os.write(slave, b"one\ntwo")
        os.close(slave)
        await log.finished()
        late, slave = os.openpty()
        log.take_terminal(late)  # of a container that has ended
        os.close(slave)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(late)
        return log.tail()

    assert asyncio.run(run()) == b"one\r\ntwo"
