"""Programs that enter running containers: they have what the first process has, and no more."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from worlds import Pods, Running, world

from vcjob.local.agent.pipes import End
from vcjob.local.node.client import NodeRefused
from vcjob.local.node.messages import EntryExited
from vcjob.local.node.receiving_terminals import receive_terminal
from vcjob.local.sandbox.launcher import search_path

pytestmark = pytest.mark.local

ENVIRONMENT = {"PATH": search_path(sys.executable), "GREETING": "hello"}

RIGHTS = """
for kind in user mnt pid uts ipc net cgroup; do readlink /proc/self/ns/$kind; done
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigIgn|SigBlk)' /proc/self/status
cat /proc/self/uid_map /proc/self/gid_map /proc/self/cgroup
umask; ulimit -u; ulimit -n; pwd; hostname; env | grep -v ^_= | sort
cat /etc/shadow 2>&1; (echo x > /proc/sys/kernel/core_pattern) 2>&1 | sed 's/.*: //'
"""


async def enter(pods: Pods, container: str, *command: str) -> tuple[str, EntryExited]:
    null = os.open(os.devnull, os.O_RDONLY)
    reader, writer = os.pipe()
    try:
        entry = await pods.node.enter(
            container,
            command,
            null,
            writer,
            writer,
            environment=ENVIRONMENT | {"PWD": "/"},
        )
    finally:
        os.close(null)
        os.close(writer)
    exited = await entry.exited
    with os.fdopen(reader, "rb") as output:
        return output.read().decode(), exited


async def on_terminal(pods: Pods, container: str, script: str) -> str:
    """What a script at a terminal prints, until it has ended."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours:
        with theirs:
            entry = await pods.node.enter(
                container,
                ("sh", "-c", script),
                *[theirs.fileno()] * 3,
                environment=ENVIRONMENT,
                terminal=True,
            )
        master = await receive_terminal(ours)
    assert master is not None
    terminal = End(master)
    try:
        said = bytearray()
        while part := await terminal.read(entry.exited):
            said += part
        assert (await entry.exited).exit_code == 0
        return said.decode()
    finally:
        terminal.close()


async def until(container: Running, last: str) -> str:
    lines = []
    while (line := await container.line()) != last:
        lines.append(line + "\n")
    return "".join(lines)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="root"),
        pytest.param({"drop_capabilities": ("ALL",)}, id="no capabilities"),
        pytest.param({"drop_capabilities": ("CHOWN", "SETUID")}, id="fewer capabilities"),
        pytest.param(
            {"user": 1234, "group": 2000, "groups": (3000,)},
            id="user",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="the map may hold one number"),
        ),
    ],
)
def test_it_has_the_rights_of_the_first_process(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    async def main() -> tuple[str, str]:
        async with world(tmp_path) as pods:
            first = await pods.start(
                ["sh", "-c", f"{RIGHTS}\necho end; exec sleep 600"],
                environment=ENVIRONMENT,
                memory_limit=1 << 28,
                **settings,
            )
            expected = await until(first, "end")
            entered, _ = await enter(pods, first.name, "sh", "-c", RIGHTS)
            return expected, entered

    expected, entered = asyncio.run(main())
    assert "NoNewPrivs:\t1" in expected
    assert entered == expected


def test_no_descriptor_of_the_node_leaks_into_it(tmp_path: Path) -> None:
    async def main() -> str:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            return (await enter(pods, container.name, "ls", "/proc/self/fd"))[0]

    assert asyncio.run(main()).split() == ["0", "1", "2", "3"]  # the last is that of ls


def test_a_request_waits_for_a_container_that_is_being_started(tmp_path: Path) -> None:
    async def main() -> tuple[str, EntryExited]:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            return await enter(pods, container.name, "sh", "-c", "cat /proc/1/comm; exit 3")

    output, exited = asyncio.run(main())
    assert (output, exited.exit_code, exited.error) == ("sleep\n", 3, "")


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        (("no-such-program",), 127, "no-such-program: No such file or directory"),
        (("/etc/passwd",), 126, "/etc/passwd: Permission denied"),
        (("sh", "-c", "kill -TERM $$"), 143, ""),
    ],
)
def test_its_end_is_told(tmp_path: Path, command: tuple[str, ...], code: int, error: str) -> None:
    async def main() -> EntryExited:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            return (await enter(pods, container.name, *command))[1]

    exited = asyncio.run(main())
    assert (exited.exit_code, exited.error) == (code, error)


def test_it_ends_with_its_container_and_by_signals(tmp_path: Path) -> None:
    async def main() -> list[int]:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            codes = []
            for number in (signal.SIGTERM, signal.SIGKILL, None):
                reader, writer = os.pipe()
                entry = await pods.node.enter(
                    container.name,
                    ["sh", "-c", "sleep 600 & echo up; wait"],
                    writer,
                    writer,
                    writer,
                    environment=ENVIRONMENT,
                )
                os.close(writer)
                with os.fdopen(reader, "rb") as output:
                    assert await asyncio.to_thread(output.readline) == b"up\n"
                    if number:
                        await pods.node.signal_entry(entry, number)
                    else:
                        await pods.node.signal(container.name, signal.SIGKILL)
                    codes.append((await entry.exited).exit_code)
                    if number != signal.SIGTERM:  # what it started has ended too
                        assert await asyncio.to_thread(output.read) == b""
            return codes

    assert asyncio.run(main()) == [143, 137, 137]


def test_a_container_that_does_not_run_cannot_be_entered(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as pods:
            ended = await pods.run("true", environment=ENVIRONMENT)
            for name in ("nobody", ended.exited.container):
                with pytest.raises(NodeRefused, match=f"container {name} is not running"):
                    await enter(pods, name, "true")

    asyncio.run(main())


def test_a_terminal_becomes_the_controlling_one(tmp_path: Path) -> None:
    async def main() -> str:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            return await on_terminal(pods, container.name, "test -t 0 && echo typed > /dev/tty")

    assert asyncio.run(main()) == "typed\r\n"


def test_a_terminal_has_a_name_inside_and_can_be_opened_by_it(tmp_path: Path) -> None:
    async def main() -> str:
        async with world(tmp_path) as pods:
            container = await pods.start(["sleep", "600"], environment=ENVIRONMENT)
            return await on_terminal(pods, container.name, "tty; test -O $(tty); echo $? >$(tty)")

    assert asyncio.run(main()) == "/dev/pts/0\r\n0\r\n"


def test_a_script_cannot_reach_the_program_it_was_started_by_for_writing(tmp_path: Path) -> None:
    """``#!/proc/self/exe`` runs what starts the script, and could then be open to its writer."""
    attack = """#!/proc/self/exe
import os
print("read-only" if os.statvfs("/proc/self/exe").f_flag & os.ST_RDONLY else "open")
"""
    plant = f"cat > /tmp/script <<'.'\n{attack}.\nchmod +x /tmp/script; echo up; exec sleep 600"

    async def main() -> str:
        async with world(tmp_path) as pods:
            container = await pods.start(["sh", "-c", plant], environment=ENVIRONMENT)
            assert await container.line() == "up"
            return (await enter(pods, container.name, "/tmp/script"))[0]

    assert asyncio.run(main()) == "read-only\n"
