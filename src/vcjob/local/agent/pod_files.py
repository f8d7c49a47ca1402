"""Files that every container of a pod gets: names and name servers, and its termination message."""

import os
from pathlib import Path

from vcjob.api.types import Object
from vcjob.local.names import files
from vcjob.local.node.messages import WriteFile
from vcjob.local.sandbox.launcher import BindMount
from vcjob.local.sandbox.paths import open_below

MOST_MESSAGE_BYTES = 4096
DEFAULT_MESSAGE_PATH = "/dev/termination-log"


class PodFiles:
    """The files of the pod ``uid``; ``directory`` is that of all pods.

    Only the termination message is a file of this machine; the others are made in each container.
    """

    def __init__(self, directory: Path, uid: str) -> None:
        self._directory = directory
        self._uid = uid
        self._texts: tuple[WriteFile, ...] = ()
        self._messages: set[Path] = set()

    def make(self, pod: Object, address: str, name_server: str) -> None:
        """Take in what the pod is called and which address it has."""
        self._texts = (
            WriteFile("/etc/hosts", files.hosts(pod, address)),
            WriteFile("/etc/hostname", f"{files.hostname(pod)}\n"),
            WriteFile("/etc/resolv.conf", files.resolv_conf(pod, name_server)),
            WriteFile("/etc/nsswitch.conf", files.NSSWITCH),
        )

    def texts(self, container: Object) -> tuple[WriteFile, ...]:
        """What ``container`` gets in /etc; what it mounts there itself comes first."""
        own = _mount_paths(container)
        return tuple(text for text in self._texts if not own & {text.target, "/etc"})

    def message_mounts(self, container: Object) -> tuple[BindMount, ...]:
        """Where ``container`` leaves its last word, empty before each run. Raises OSError."""
        target = container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH
        if target in _mount_paths(container):
            return ()
        message = self._message(container)
        self._messages.add(message)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(message, flags, 0o600)
        os.fchmod(fd, 0o666)
        os.close(fd)
        return (BindMount(str(message), target, file=True),)

    def termination_message(self, container: Object) -> str:
        """What the container left as its last word."""
        message = self._message(container)
        try:
            fd = open_below(str(message.parent), message.name, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return ""
        with os.fdopen(fd, "rb") as file:
            return file.read(MOST_MESSAGE_BYTES).decode("utf-8", "replace")

    def remove(self) -> None:
        """Take the messages away. Raises OSError."""
        for message in self._messages:
            message.unlink(missing_ok=True)

    def _message(self, container: Object) -> Path:
        return self._directory / f"{self._uid}.{container['name']}.message"


def _mount_paths(container: Object) -> set[str]:
    return {str(m.get("mountPath")).rstrip("/") for m in container.get("volumeMounts") or ()}
