"""From a container and this machine to bubblewrap's options: a pure function, top to bottom.

The root is a fresh tmpfs, private and writable. Into it come, read-only, this machine's programs
and the user's Python; /etc as a private layer over the node's copy of it, in which there are no
secrets; then the pod's volumes. What is not put there does not exist inside.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from vcjob.local.node.messages import BindBelow, MakeBelow, WriteFile
from vcjob.local.sandbox.machine import Machine

PRIVATE = "/.vcjob"
"""Where vcjob's own things are inside: ``bin`` (python, sh), ``machine`` (where links lead)."""

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

DEFAULT_CAPABILITIES = (
    *("CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL"),
    *("CAP_MKNOD", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID"),
    *("CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT"),
)
"""What containerd and CRI-O give a container that asks for nothing."""

_MADE = frozenset({"/etc", "/home", "/root", "/run", "/tmp", "/var", "/var/tmp", "/run/lock"})

Option = str | BindBelow | MakeBelow | WriteFile


class BindMount(msgspec.Struct, frozen=True):
    """A directory or file of this machine at ``target`` in the container.

    ``source`` is trusted (a volume's own directory); ``sub_path`` below it is not, and is opened
    so that no link leads out. ``file``: the source is a file.
    """

    source: str
    target: str
    read_only: bool = False
    sub_path: str = ""
    file: bool = False


class ContainerSandbox(msgspec.Struct, frozen=True):
    """What the sandbox of one container depends on, apart from its command.

    ``files`` are made in the private root, at paths without links. ``user``, ``group``, ``groups``
    are numbers the id map has (``IdMaps.has_user``); ``drop_capabilities`` are names as the API
    writes them (``CHOWN``, or ``ALL``). ``terminal``: it has one, made by the node.
    """

    hostname: str
    environment: Mapping[str, str] = {}
    working_directory: str = "/"
    mounts: tuple[BindMount, ...] = ()
    files: tuple[WriteFile, ...] = ()
    read_only_root: bool = False
    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    terminal: bool = False


def launch(container: ContainerSandbox, machine: Machine) -> tuple[Option, ...]:
    """bubblewrap's options for a container, for ``StartContainer.options``.

    The node adds the user namespace; network and /sys are those of the pod.
    """
    mounts = sorted(
        (msgspec.structs.replace(m, target=resolve(m.target, machine)) for m in container.mounts),
        key=lambda m: m.target.count("/"),
    )
    directory = resolve(container.working_directory or "/", machine)
    targets = [*(f.target for f in container.files), *(m.target for m in mounts), directory]
    return (
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--as-pid-1", "--die-with-parent", "--hostname", container.hostname),
        *_private_directories(),
        *_parents([*machine.python.directories, *targets], machine),
        *_programs(machine),
        *_kernel_views(machine),
        *(("--dev-bind", "/dev/pts", "/dev/pts") if container.terminal else ()),
        *_own_programs(machine),
        *("--overlay-src", machine.etc, "--tmp-overlay", "/etc"),
        *_opened_directories(tuple(targets), machine),
        *container.files,
        *_volumes(mounts),
        *_working_directory(directory, mounts, machine),
        *(("--remount-ro", "/", "--remount-ro", "/etc") if container.read_only_root else ()),
        *_capabilities(container),
        *_environment(container.environment),
    )


def search_path(python: str, given: str = "") -> str:
    """PATH inside: the user's Python first, then what the container asks for or the usual."""
    own = python.rpartition("/")[0]
    first = [f"{PRIVATE}/bin"]
    if own not in STANDARD_PATH.split(":"):
        first.append(own)
    return ":".join([*first, given or STANDARD_PATH])


def own_shell(command: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """The command with our ``sh`` where it names the machine's own by its path.

    PATH finds ours first; what is written as ``/bin/sh`` does not go through it.
    """
    if machine.shell and command[0] in ("/bin/sh", "/usr/bin/sh"):
        return (f"{PRIVATE}/bin/sh", *command[1:])
    return tuple(command)


_TAKE_TERMINAL = """
import errno, fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
given = open("/proc/self/environ", "rb").read().split(b"\\0")
command = sys.argv[1:]
try:
    os.execvpe(command[0], command, dict(entry.split(b"=", 1) for entry in given if b"=" in entry))
except OSError as error:
    sys.stderr.write(f"{command[0]}: {error.strerror}\\n")
    sys.exit(127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126)
"""


def at_terminal(command: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """The command as the leader of a session that the terminal on its standard input controls.

    The container's first process cannot be that from the start: it shares bubblewrap's session,
    where Ctrl-C would end bubblewrap. The user's Python is the one program that every container
    has.
    """
    return (machine.python.executable, "-I", "-S", "-B", "-c", _TAKE_TERMINAL, *command)


def resolve(path: str, machine: Machine) -> str:
    """A path inside without doubled slashes and without the top-level links on its way."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    clean = "/" + "/".join(parts)
    for link, target in (*machine.links, ("/var/run", "run"), ("/var/lock", "run/lock")):
        if clean == link or clean.startswith(f"{link}/"):
            return "/" + target.strip("/") + clean[len(link) :]
    return clean


def _programs(machine: Machine) -> Iterator[str]:
    for directory in machine.programs:
        yield from ("--ro-bind", directory, directory)
    for link, target in machine.links:
        yield from ("--symlink", target, link)
    for directory in machine.python.directories:
        if not any(_inside(directory, d) for d in machine.programs):
            yield from ("--ro-bind", directory, directory)


def _kernel_views(machine: Machine) -> Iterator[str]:
    """/proc, /sys and /dev, closed where a container runtime closes them.

    Root's number is kept when root started vcjob, and the kernel lets that number write settings
    without any capability: hence the read-only mounts.
    """
    yield from ("--proc", "/proc")
    for path in machine.proc_read_only:
        yield from ("--ro-bind", path, path)
    for path in machine.proc_hidden:
        yield from ("--ro-bind", "/dev/null", path)
    yield from ("--ro-bind", "/sys", "/sys")
    yield from ("--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm")


def _private_directories() -> Iterator[str]:
    """The usual directories of a root; /root can be passed through: a Python may lie below."""
    for directory in (
        *("/etc", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/var"),
        *("/var/cache", "/var/lib", "/var/log"),
        *(PRIVATE, f"{PRIVATE}/bin", f"{PRIVATE}/machine"),
    ):
        yield from ("--perms", "0755", "--dir", directory)
    for directory in ("/tmp", "/var/tmp", "/run/lock"):
        yield from ("--perms", "1777", "--dir", directory)
    yield from ("--symlink", "/run", "/var/run", "--symlink", "/run/lock", "/var/lock")


def _parents(paths: list[str], machine: Machine) -> Iterator[str]:
    """The directories above places in the private root; bubblewrap itself makes them 0700."""
    made = set()
    for path in paths:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts)):
            parent = "/" + "/".join(parts[:depth])
            if parent in made or parent in _MADE or _seen(parent, machine):
                continue
            if parent.startswith(("/etc/", "/proc/", "/sys/", "/dev/")):
                continue
            made.add(parent)
            yield from ("--perms", "0755", "--dir", parent)


def _own_programs(machine: Machine) -> Iterator[str]:
    """``python`` and ``python3`` where the interpreter has no such names beside it; ``sh``."""
    folder, _, name = machine.python.executable.rpartition("/")
    beside = {entry.name for entry in machine.list(folder) or ()} | {name}
    for alias in ("python", "python3"):
        if alias not in beside or folder in STANDARD_PATH.split(":"):
            yield from ("--symlink", machine.python.executable, f"{PRIVATE}/bin/{alias}")
    if machine.shell:
        yield from ("--symlink", machine.shell, f"{PRIVATE}/bin/sh")


@lru_cache(maxsize=64)
def _opened_directories(targets: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """Every read-only directory that needs a new mount point, as links into a view of it.

    Not as layers like /etc: a directory with mounts below it cannot be the lower one. Kept, because
    the pods of a task all have the same.
    """
    opened: set[str] = set()
    options: list[str] = []
    for target in targets:
        parent = _to_open(target, machine)
        if parent and not any(_inside(parent, d) or parent == d for d in opened):
            opened.add(parent)
    for directory in sorted(opened):
        options += ("--ro-bind", directory, f"{PRIVATE}/machine{directory}", "--tmpfs", directory)
        options += _links(directory, [t for t in targets if _inside(t, directory)], machine)
    return tuple(options)


def _to_open(target: str, machine: Machine) -> str:
    """The read-only directory that must become a private one for ``target`` to be made in it.

    "" where the target exists or lies in the private root.
    """
    if target == "/" or not any(_inside(target, d) for d in machine.programs):
        return ""
    parent, _, name = target.rpartition("/")
    while (entries := machine.list(parent)) is None:
        parent, _, name = parent.rpartition("/")
    return "" if any(entry.name == name and not entry.link for entry in entries) else parent


def _links(directory: str, targets: list[str], machine: Machine) -> Iterator[str]:
    """Fill a private directory: a link for each entry, directories where a target lies below."""
    for entry in machine.list(directory) or ():
        path = f"{directory}/{entry.name}"
        if path in targets:
            continue
        if entry.directory and (below := [t for t in targets if _inside(t, path)]):
            yield from ("--dir", path)
            yield from _links(path, below, machine)
        elif not any(_inside(t, path) for t in targets):
            yield from ("--symlink", entry.link or f"{PRIVATE}/machine{path}", path)


def _volumes(mounts: list[BindMount]) -> Iterator[Option]:
    for position, mount in enumerate(mounts):
        yield from _mount_point(mount.target, mount.file, mounts[:position])
        yield BindBelow(mount.source, mount.sub_path, mount.target, mount.read_only)


def _working_directory(
    directory: str, mounts: list[BindMount], machine: Machine
) -> Iterator[Option]:
    """The working directory is made when missing, as kubelet does, in a volume too."""
    if any(m.target == directory for m in mounts):
        pass
    elif any(_inside(directory, m.target) for m in mounts):
        yield from _mount_point(directory, False, mounts)
    elif machine.list(directory) is None or not _seen(directory, machine):
        yield from ("--dir", directory)
    yield from ("--chdir", directory)


def _mount_point(target: str, file: bool, mounts: Iterable[BindMount]) -> Iterator[Option]:
    """A place inside a volume is made by the node, which follows no link out of the volume."""
    around = [m for m in mounts if _inside(target, m.target)]
    if around and not around[-1].read_only:
        inner = around[-1]
        below = f"{inner.sub_path}/{target[len(inner.target) :].lstrip('/')}".lstrip("/")
        yield MakeBelow(inner.source, below, file)


def _seen(path: str, machine: Machine) -> bool:
    return any(
        path == d or _inside(path, d) for d in (*machine.programs, *machine.python.directories)
    )


def _capabilities(container: ContainerSandbox) -> Iterator[str]:
    """A user other than root has none, as in every container runtime."""
    if container.user != 0:
        return
    dropped = {f"CAP_{name.upper().removeprefix('CAP_')}" for name in container.drop_capabilities}
    yield from ("--cap-drop", "ALL")
    if "CAP_ALL" not in dropped:
        for capability in DEFAULT_CAPABILITIES:
            if capability not in dropped:
                yield from ("--cap-add", capability)


def _environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        yield from ("--setenv", name, value)


def _inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")
