"""One running container as the node sees it: a bubblewrap process and what it reports."""

import contextlib
import os
import signal

import msgspec

from vcjob.local.node.cgroups import ContainerGroup
from vcjob.local.node.messages import ContainerExited, StartContainer
from vcjob.local.node.spawn import Sandbox
from vcjob.local.node.starter import NOT_STARTED


class SandboxStatus(msgspec.Struct, rename="kebab"):
    """A line of bubblewrap's ``--json-status-fd``; the exit code comes only if the program ran."""

    child_pid: int = 0
    exit_code: int | None = None


_CAPABILITY_NUMBERS = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_RAW": 13,
    "CAP_SYS_CHROOT": 18,
    "CAP_MKNOD": 27,
    "CAP_AUDIT_WRITE": 29,
    "CAP_SETFCAP": 31,
}
"""Of linux/capability.h: those of ``launcher.DEFAULT_CAPABILITIES``, a test compares."""

_decode = msgspec.json.Decoder(SandboxStatus).decode


class Container:
    """``name`` of ``pod``, in ``sandbox``. ``process`` is its first process, 0 until known."""

    def __init__(
        self, request: StartContainer, sandbox: Sandbox, group: ContainerGroup | None
    ) -> None:
        self.name = request.container
        self.pod = request.pod
        self.memory_limit = request.memory_limit
        self.process_limit = request.process_limit
        self.capabilities = _granted(request)
        self.user, self.group_number, self.groups = request.user, request.group, request.groups
        self.sandbox = sandbox
        self.group = group
        self.process = 0
        self.out_of_memory = False
        self._exit_code: int | None = None
        self._unread = b""
        self._early: list[signal.Signals] = []

    def read_status(self) -> bool | None:
        """Take in what the sandbox reported; False at the end, None when there is nothing now."""
        try:
            data = os.read(self.sandbox.status, 4096)
        except BlockingIOError:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            status = _decode(line)
            if status.child_pid:
                self.process = status.child_pid
                early, self._early = self._early, []
                for number in early:
                    self.send(number)
            if status.exit_code is not None:
                self._exit_code = status.exit_code
        return bool(data)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process.

        SIGKILL ends its whole tree, as it is pid 1 of a pid namespace. The sandbox's own end takes
        the container with it (``--die-with-parent``), so that SIGKILL works at any time.
        """
        if self.process:
            with contextlib.suppress(ProcessLookupError):  # the sandbox has collected its end
                os.kill(self.process, number)
        elif number == signal.SIGKILL:
            os.kill(self.sandbox.monitor, number)
        else:
            self._early.append(number)

    def exited(self, wait_status: int) -> ContainerExited:
        """The end of the container, from what the sandbox reported and how it ended itself."""
        code = self._exit_code
        if self.group:
            self.out_of_memory = self.group.out_of_memory()
            self.group.remove()
        if code is None and os.WIFSIGNALED(wait_status):
            code = 128 + os.WTERMSIG(wait_status)
        return ContainerExited(
            self.name,
            NOT_STARTED if code is None else code,
            started=code is not None,
            out_of_memory=self.out_of_memory,
        )


def _granted(request: StartContainer) -> int:
    """The capabilities that the sandbox is told to leave its program, as bits."""
    options = request.options
    added = (options[at + 1] for at, option in enumerate(options) if option == "--cap-add")
    return sum(1 << _CAPABILITY_NUMBERS[name] for name in added if isinstance(name, str))
