import msgspec
import pytest

from vcjob.local.node.messages import BindBelow, MakeBelow, WriteFile
from vcjob.local.sandbox.launcher import (
    BindMount,
    ContainerSandbox,
    launch,
    own_shell,
    resolve,
    search_path,
)
from vcjob.local.sandbox.machine import Entry, Machine
from vcjob.local.sandbox.python import Python

TREE = {
    "/etc": (
        Entry("hosts"),
        Entry("ssl", directory=True),
        Entry("localtime", link="/usr/zone"),
    ),
    "/etc/ssl": (Entry("certs", directory=True), Entry("openssl.cnf")),
    "/usr": (Entry("bin", directory=True), Entry("local", directory=True)),
    "/usr/bin": (Entry("python3"),),
    "/usr/local": (Entry("bin", directory=True), Entry("man", link="share/man")),
}

MACHINE = Machine(
    programs=("/usr",),
    links=(("/bin", "usr/bin"), ("/lib", "usr/lib")),
    python=Python("/home/me/env/bin/python", ("/home/me/env",)),
    etc="/state/node/etc",
    proc_read_only=("/proc/sys",),
    proc_hidden=("/proc/keys",),
    list=TREE.get,
)


def options(**settings: object) -> list[object]:
    sandbox = msgspec.structs.replace(ContainerSandbox("worker-0"), **settings)
    return list(launch(sandbox, MACHINE))


def has(found: list[object], *wanted: object) -> bool:
    return any(found[i : i + len(wanted)] == list(wanted) for i in range(len(found)))


def test_the_container_is_pid_1_of_its_own_namespaces_and_dies_with_the_node() -> None:
    found = options()
    for option in ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1"):
        assert option in found
    assert "--die-with-parent" in found
    assert has(found, "--hostname", "worker-0")


def test_nothing_of_the_machine_is_bound_writable() -> None:
    found = options()
    assert "--bind" not in found
    assert "--dev-bind" not in found
    bound = {found[i + 1] for i, option in enumerate(found) if option == "--ro-bind"}
    assert bound == {"/usr", "/home/me/env", "/proc/sys", "/dev/null", "/sys"}


def test_etc_is_a_private_layer_over_the_nodes_copy() -> None:
    assert has(options(), "--overlay-src", "/state/node/etc", "--tmp-overlay", "/etc")


def test_with_a_read_only_root_etc_is_read_only_too() -> None:
    assert has(options(read_only_root=True), "--remount-ro", "/", "--remount-ro", "/etc")


def test_files_are_written_before_volumes_are_mounted() -> None:
    text = WriteFile("/etc/hosts", "127.0.0.1 localhost")
    found = options(files=(text,), mounts=(BindMount("/state/v", "/etc/volcano"),))
    assert found.index("--tmp-overlay") < found.index(text)
    assert found.index(text) < found.index(BindBelow("/state/v", "", "/etc/volcano"))


def test_a_mount_below_a_directory_of_the_machine_opens_that_directory() -> None:
    found = options(mounts=(BindMount("/state/v", "/usr/local/data"),))
    assert has(found, "--tmpfs", "/usr/local")
    assert has(found, "--symlink", "/.vcjob/machine/usr/local/bin", "/usr/local/bin")
    assert has(found, "--symlink", "share/man", "/usr/local/man")


def test_volumes_come_outermost_first_and_points_inside_them_are_made_safely() -> None:
    inner, outer = BindMount("/state/b", "/v/x/y"), BindMount("/state/a", "/v", sub_path="s")
    found = [o for o in options(mounts=(inner, outer)) if not isinstance(o, str)]
    assert found == [
        BindBelow("/state/a", "s", "/v"),
        MakeBelow("/state/a", "s/x/y"),
        BindBelow("/state/b", "", "/v/x/y"),
    ]


def test_a_read_only_root_is_closed_after_everything_was_made_in_it() -> None:
    found = options(read_only_root=True, mounts=(BindMount("/state/v", "/data"),))
    assert found.index(BindBelow("/state/v", "", "/data")) < len(found) - 1
    assert has(found[found.index(BindBelow("/state/v", "", "/data")) :], "--remount-ro", "/")


@pytest.mark.parametrize(
    ("dropped", "has_chown", "has_any"),
    [
        ((), True, True),
        (("CHOWN",), False, True),
        (("cap_chown",), False, True),
        (("ALL",), False, False),
    ],
)
def test_capabilities(dropped: tuple[str, ...], has_chown: bool, has_any: bool) -> None:
    found = options(drop_capabilities=dropped)
    assert has(found, "--cap-drop", "ALL")
    assert ("CAP_CHOWN" in found) is has_chown
    assert ("--cap-add" in found) is has_any


def test_no_capability_that_reaches_beyond_a_container_is_ever_granted() -> None:
    granted = {o for o in options() if isinstance(o, str) and o.startswith("CAP_")}
    assert not granted & {"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_NET_ADMIN", "CAP_SYS_RESOURCE"}


def test_what_proc_tells_of_other_users_is_covered() -> None:
    assert has(options(), "--ro-bind", "/dev/null", "/proc/keys")


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/lib//x/", "/usr/lib/x"),
        ("/lib", "/usr/lib"),
        ("/var/run", "/run"),
        ("/var/run/s", "/run/s"),
        ("/var/lock/", "/run/lock"),
        ("/library/x", "/library/x"),
        ("/", "/"),
    ],
)
def test_resolve(path: str, resolved: str) -> None:
    assert resolve(path, MACHINE) == resolved


def test_the_users_python_comes_first_on_the_path() -> None:
    assert search_path("/env/bin/python").startswith("/.vcjob/bin:/env/bin:/usr/local/sbin:")
    assert search_path("/usr/bin/python3", "/opt/x:/usr/bin") == "/.vcjob/bin:/opt/x:/usr/bin"


@pytest.mark.parametrize(
    ("shell", "command", "runs"),
    [
        ("/usr/bin/dash", ["/bin/sh", "-c", "true"], ("/.vcjob/bin/sh", "-c", "true")),
        ("/usr/bin/dash", ["/usr/bin/sh"], ("/.vcjob/bin/sh",)),
        ("/usr/bin/dash", ["/bin/bash", "/bin/sh"], ("/bin/bash", "/bin/sh")),
        ("", ["/bin/sh", "-c", "true"], ("/bin/sh", "-c", "true")),
    ],
)
def test_where_sh_is_bash_its_path_leads_to_our_shell_too(
    shell: str, command: list[str], runs: tuple[str, ...]
) -> None:
    assert own_shell(command, msgspec.structs.replace(MACHINE, shell=shell)) == runs
