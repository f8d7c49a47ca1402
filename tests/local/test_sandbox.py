"""What a container sees and may do; each test holds for root and for an ordinary user alike."""

import asyncio
import contextlib
import ctypes
import os
import platform
import signal
import socket
import sys
from pathlib import Path

import pytest
from worlds import Ended, Pods, world

from vcjob.local.node.call_filter import ARCHITECTURES
from vcjob.local.sandbox.launcher import BindMount, search_path

pytestmark = pytest.mark.local

ENVIRONMENT = {"PATH": search_path(sys.executable)}


def in_world(directory: Path, script: str, **settings: object) -> Ended:
    """What a shell script prints in a container of a fresh world."""

    async def run() -> Ended:
        async with world(directory) as tester:
            return await tester.sh(script, **{"environment": ENVIRONMENT, **settings})

    return asyncio.run(run())


def test_capabilities_are_a_container_runtimes_default_and_cannot_grow(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "grep -E 'Cap(Prm|Eff)|NoNewPrivs' /proc/self/status")
    # containerd's default set, as capsh --decode=00000000a80425fb spells it.
    assert ended.output.split() == [
        *("CapPrm:", "00000000a80425fb", "CapEff:", "00000000a80425fb", "NoNewPrivs:", "1"),
    ]


def test_capabilities_can_be_dropped(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "grep CapEff /proc/self/status", drop_capabilities=("ALL",))
    assert ended.output.split() == ["CapEff:", "0000000000000000"]


def test_it_has_no_power_over_network_mounts_or_further_namespaces(tmp_path: Path) -> None:
    ended = in_world(
        tmp_path,
        "mount -t tmpfs x /mnt 2>/dev/null && echo mounted;"
        "unshare -U true 2>/dev/null && echo user namespace;"
        "unshare -n true 2>/dev/null && echo network namespace;"
        "mknod /tmp/disk b 8 0 2>/dev/null && echo device;"
        "hostname other 2>/dev/null && echo host name; echo end",
    )
    assert ended.output == "end\n"


@pytest.mark.parametrize("settings", [{}, {"user": 1234, "group": 1234}], ids=["root", "user"])
def test_no_descriptor_of_ours_leaks_into_it(tmp_path: Path, settings: dict[str, object]) -> None:
    if settings and os.geteuid() != 0:
        pytest.skip("the map may hold one number")
    ended = in_world(tmp_path, "readlink /proc/$$/ns/user; ls -l /proc/$$/fd; true", **settings)
    own, _, *lines = ended.output.splitlines()
    # bubblewrap leaves the user namespace open in which the program is anyway.
    open_ones = [line.split()[-3] for line in lines if not line.endswith(own)]
    assert open_ones == ["0", "1", "2"]


def test_no_kernel_setting_can_be_written(tmp_path: Path) -> None:
    ended = in_world(
        tmp_path,
        "find /proc /sys -path '/proc/[0-9]*' -prune -o -path /proc/self -prune"
        " -o -path /proc/thread-self -prune -o -type f -print 2>/dev/null |"
        " while read -r f; do"
        '  if { : >> "$f"; } 2>/dev/null; then echo "$f"; fi; done',
    )
    assert ended.output == ""


def test_secrets_of_the_machine_are_hidden(tmp_path: Path) -> None:
    ended = in_world(
        tmp_path,
        "cat /etc/shadow | cut -d: -f2 | sort -u;"
        " cat /etc/gshadow /etc/shadow- /etc/sudoers /etc/ssl/private/* 2>/dev/null; echo end",
    )
    assert ended.output == "*\nend\n"  # accounts as on the machine, nobody with a password


def test_host_keys_of_the_machine_are_not_those_of_pods(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "cat /etc/ssh/*_key 2>/dev/null; echo end")
    inside = ended.output.removesuffix("end\n")
    for key in Path("/etc/ssh").glob("*_key"):
        if os.access(key, os.R_OK):
            assert key.read_text() not in inside
    assert inside.count("BEGIN") <= 1


def test_etc_is_private_and_writable_even_in_place(tmp_path: Path) -> None:
    before = Path("/etc/passwd").read_bytes()
    ended = in_world(
        tmp_path,
        "echo 'me:x:7:7::/:/bin/sh' >> /etc/passwd && getent passwd me;"
        " mkdir /etc/mine && touch /etc/mine/file && ls /etc/mine",
    )
    assert ended.output == "me:x:7:7::/:/bin/sh\nfile\n"
    assert Path("/etc/passwd").read_bytes() == before


def test_homes_are_empty_but_for_the_users_python(tmp_path: Path) -> None:
    home = Path.home()
    ended = in_world(
        tmp_path, f"find /home {home} -type f 2>/dev/null | grep -v /lib/ | grep -v /bin/"
    )
    allowed = (sys.prefix, sys.base_prefix)
    assert [line for line in ended.output.splitlines() if not line.startswith(allowed)] == []


def test_other_directories_of_the_machine_do_not_exist(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    ended = in_world(tmp_path, f"ls {secret} /boot /work 2>/dev/null; echo end")
    assert ended.output == "end\n"


def test_it_sees_only_its_own_processes(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "echo /proc/[0-9]*; cat /proc/1/cmdline | tr '\\0' ' '")
    processes, command = ended.output.splitlines()
    assert len(processes.split()) <= 2
    assert command.startswith("sh -c")


def test_host_loopback_and_abstract_sockets_are_out_of_reach(tmp_path: Path) -> None:
    name = f"vcjob-test-{os.getpid()}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        unix.bind("\0" + name)
        unix.listen()
        port = tcp.getsockname()[1]
        script = (
            "import socket\n"
            f"for family, address in (2, ('127.0.0.1', {port})), (1, '\\0{name}'):\n"
            "  try: socket.socket(family).connect(address); print('reached', address)\n"
            "  except ConnectionRefusedError: print('refused')\n"
        )
        ended = in_world(
            tmp_path, 'python -c "$SCRIPT"', environment={**ENVIRONMENT, "SCRIPT": script}
        )
    assert ended.output == "refused\nrefused\n"


@pytest.mark.skipif(platform.machine() not in ARCHITECTURES, reason="numbers of calls not known")
def test_keys_of_whoever_started_vcjob_are_out_of_reach(tmp_path: Path) -> None:
    add, request, control = ARCHITECTURES[platform.machine()].keys
    libc = ctypes.CDLL(None, use_errno=True)
    user_keyring, invalidate = -4, 21
    key = libc.syscall(add, b"user", b"vcjob-test", b"ticket", 6, user_keyring)
    if key < 0:
        pytest.skip(f"this kernel keeps no keys: {os.strerror(ctypes.get_errno())}")
    try:
        ended = in_world(
            tmp_path,
            f"""python - <<'end'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    print("call" if libc.syscall(*arguments) >= 0 else os.strerror(ctypes.get_errno()))
data = ctypes.create_string_buffer(100)
call({control}, 11, {key}, data, 100)
call({control}, 1, None)
call({request}, b"user", b"vcjob-test", None, 0)
call({add}, b"user", b"other", b"x", 1, -2)
end
cat /proc/keys 2>/dev/null; echo end""",
        )
    finally:
        libc.syscall(control, invalidate, key)
    assert ended.output == "Operation not permitted\n" * 4 + "end\n"


def test_sockets_between_virtual_machines_are_not_made(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "python -c 'import socket; socket.socket(socket.AF_VSOCK)'")
    assert "Address family not supported" in ended.output


def test_the_root_is_private_and_writable(tmp_path: Path) -> None:
    ended = in_world(
        tmp_path,
        "for d in / /etc /tmp /run /var /var/tmp /home /root /dev/shm;"
        " do echo x > $d/file && cat $d/file; done; echo x > /usr/file",
    )
    lines = ended.output.splitlines()
    assert lines[:9] == ["x"] * 9
    assert "Read-only file system" in lines[9]
    assert not os.path.exists("/etc/file")


def test_read_only_root_leaves_volumes_writable(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    ended = in_world(
        tmp_path,
        "for d in / /etc /tmp; do touch $d/file 2>/dev/null || echo refused; done; echo y > /v/f",
        read_only_root=True,
        mounts=(BindMount(str(volume), "/v"),),
    )
    assert ended.output.count("refused") == 3
    assert (volume / "f").read_text() == "y\n"


@pytest.mark.parametrize(
    "target",
    ["/var/tf_dist_mnist", "/etc/volcano", "/data/x", "/etc/ssl/mine", "/usr/local/mine",
     "/opt/mine/deep", "/lib/mine", "/var/run/secrets/here", "/root/data", "/home/me/data",
     "/sbin", "/var/run", "/var/lock"],
)  # fmt: skip
def test_a_volume_can_be_mounted_anywhere(tmp_path: Path, target: str) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "f").write_text("content")
    ended = in_world(tmp_path, f"cat {target}/f", mounts=(BindMount(str(volume), target),))
    assert ended.output == "content"


def test_a_file_can_take_the_place_of_one_of_the_machine(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("10.0.0.2 me\n")
    ended = in_world(
        tmp_path,
        "cat /etc/hosts; cat /etc/foo/file; cat /etc/passwd | head -1",
        mounts=(
            BindMount(str(hosts), "/etc/hosts", file=True),
            BindMount(str(hosts), "/etc/foo/file", read_only=True, file=True),
        ),
    )
    assert ended.output.startswith("10.0.0.2 me\n10.0.0.2 me\nroot:")


def test_a_link_in_a_volume_does_not_lead_out(tmp_path: Path) -> None:
    volume, secret = tmp_path / "volume", tmp_path / "secret"
    volume.mkdir()
    secret.mkdir()
    (secret / "f").write_text("secret")
    (volume / "out").symlink_to(secret)
    with pytest.raises(Exception, match="leads out of its volume"):
        in_world(tmp_path, "cat /v/f", mounts=(BindMount(str(volume), "/v", sub_path="out"),))


def test_a_mount_point_inside_a_volume_is_not_made_through_a_link(tmp_path: Path) -> None:
    volume, other, secret = tmp_path / "volume", tmp_path / "other", tmp_path / "secret"
    for directory in (volume, other, secret):
        directory.mkdir()
    (volume / "out").symlink_to(secret)
    with pytest.raises(Exception, match="leads out of its volume"):
        in_world(
            tmp_path,
            "true",
            mounts=(BindMount(str(volume), "/v"), BindMount(str(other), "/v/out/made")),
        )
    assert list(secret.iterdir()) == []


def test_environment_does_not_show_in_the_process_list(tmp_path: Path) -> None:
    async def main() -> list[bytes]:
        async with world(tmp_path) as tester:
            container = await tester.start(
                ["sh", "-c", "echo up; exec sleep 60"],
                environment={**ENVIRONMENT, "PASSWORD": "not-to-be-seen"},
            )
            assert await container.line() == "up"
            return command_lines()

    found = asyncio.run(main())
    assert any(b"echo up" in line or b"sleep" in line for line in found)
    assert not [line for line in found if b"not-to-be-seen" in line]


def command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                found.append((process / "cmdline").read_bytes())
    return found


def test_processes_are_limited(tmp_path: Path) -> None:
    script = (
        "import os, time\nmade = 0\n"
        "try:\n  while made < 500:\n"
        "    if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "    made += 1\n"
        "except BlockingIOError: pass\nprint(made < 100)\n"
    )
    ended = in_world(
        tmp_path,
        'python -c "$SCRIPT"',
        environment={**ENVIRONMENT, "SCRIPT": script},
        process_limit=64,
    )
    assert ended.output == "True\n"


def test_python_inside_is_the_one_that_was_chosen(tmp_path: Path) -> None:
    ended = in_world(tmp_path, "python -c 'import sys, msgspec; print(sys.prefix)'")
    assert ended.output == f"{sys.prefix}\n"


def test_sigterm_is_ignored_by_a_first_process_without_a_handler(tmp_path: Path) -> None:
    async def run(tester: Pods) -> tuple[str, Ended]:
        container = await tester.start(
            ["sh", "-c", "echo up; sleep 60; true"],
            environment=ENVIRONMENT,
        )
        first = await container.line()
        await tester.node.signal(container.name, signal.SIGTERM)
        other = await tester.sh("echo still there", environment=ENVIRONMENT)
        assert other.output == "still there\n"
        await tester.node.signal(container.name, signal.SIGKILL)
        return first, await container.ended()

    async def main() -> tuple[str, Ended]:
        async with world(tmp_path) as tester:
            return await run(tester)

    first, ended = asyncio.run(main())
    assert first == "up"
    assert ended.exited.exit_code == 137


def test_sigterm_reaches_a_handler(tmp_path: Path) -> None:
    async def main() -> Ended:
        async with world(tmp_path) as tester:
            container = await tester.start(
                ["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 60 & wait $!; done"],
                environment=ENVIRONMENT,
            )
            assert await container.line() == "up"
            await tester.node.signal(container.name, signal.SIGTERM)
            return await container.ended()

    assert asyncio.run(main()).exited.exit_code == 7


def test_a_command_that_does_not_exist_never_started(tmp_path: Path) -> None:
    async def main() -> Ended:
        async with world(tmp_path) as tester:
            return await tester.run("no-such-program", environment=ENVIRONMENT)

    ended = asyncio.run(main())
    assert (ended.exited.started, ended.exited.exit_code) == (False, 128)
    assert "no-such-program: No such file or directory" in ended.output


def test_a_container_above_its_memory_limit_is_killed(tmp_path: Path) -> None:
    async def main() -> Ended:
        async with world(tmp_path) as tester:
            return await tester.run(
                "python",
                "-c",
                "b = bytearray(300 << 20); b[::4096] = b'x' * len(b[::4096]);"
                "import time; time.sleep(60)",
                environment=ENVIRONMENT,
                memory_limit=100 << 20,
            )

    ended = asyncio.run(main())
    assert (ended.exited.exit_code, ended.exited.out_of_memory) == (137, True)
