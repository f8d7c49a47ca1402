"""Files that every container of a pod gets: names and name servers, and its termination message."""

import hashlib
import os
from pathlib import Path

from vcjob.api.types import Object
from vcjob.local.names import files
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.paths import open_below

MOST_MESSAGE_BYTES = 4096
DEFAULT_MESSAGE_PATH = "/dev/termination-log"

_SHARED = "etc"


class PodFiles:
    """The files of one pod in its ``directory``; what is equal for many pods lies beside it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mounts: tuple[BindMount, ...] = ()

    def make(self, pod: Object, address: str, name_server: str) -> None:
        """Write them; raises OSError."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        shared = self._directory.parent / _SHARED
        self._mounts = (
            _file(self._directory / "hosts", "/etc/hosts", files.hosts(pod, address)),
            _file(self._directory / "hostname", "/etc/hostname", f"{files.hostname(pod)}\n"),
            _once(shared, "/etc/resolv.conf", files.resolv_conf(pod, name_server)),
            _once(shared, "/etc/nsswitch.conf", files.NSSWITCH),
        )

    def mounts(self, container: Object) -> tuple[BindMount, ...]:
        """What ``container`` gets to see; what it mounts itself comes first."""
        own = {str(m.get("mountPath")).rstrip("/") for m in container.get("volumeMounts") or ()}
        message = self._message(container)
        _write(message, "", 0o666)
        target = container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH
        mounts = (*self._mounts, BindMount(str(message), target, file=True))
        return tuple(mount for mount in mounts if mount.target not in own)

    def termination_message(self, container: Object) -> str:
        """What the container left as its last word."""
        message = self._message(container)
        try:
            fd = open_below(str(message.parent), message.name, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return ""
        with os.fdopen(fd, "rb") as file:
            return file.read(MOST_MESSAGE_BYTES).decode("utf-8", "replace")

    def _message(self, container: Object) -> Path:
        return self._directory / f"{container['name']}.message"


def _file(path: Path, target: str, text: str) -> BindMount:
    _write(path, text, 0o644)
    return BindMount(str(path), target, file=True)


def _once(directory: Path, target: str, text: str) -> BindMount:
    """A file that many pods share: its name is that of its content, and nobody may write it."""
    path = directory / hashlib.sha256(text.encode()).hexdigest()[:32]
    if not path.exists():
        directory.mkdir(mode=0o700, exist_ok=True)
        _write(path, text, 0o644)
    return BindMount(str(path), target, read_only=True, file=True)


def _write(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
