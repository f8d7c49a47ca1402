"""Where the engine of a user keeps what outlives it, and who may use it: one process at a time.

::

    <state directory>/engine/     0700, files 0600
        lock                      held by the engine that runs; its process number is inside
        engine.json               where the engine that runs can be found
        kubeconfig                how clients reach it; only while it runs
        objects.sqlite            every object
        logs/                     the output of containers, as in the directory of a run
        engine.log                what the engine itself has to say
        port, token, *.pem        the same from one start to the next
"""

import contextlib
import fcntl
import os
import select
import time
from pathlib import Path

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.local.options import EngineOptions
from vcjob.local.run_directory import StateUnusable, state_root

_LOCK_SECONDS = 5.0
_LOCK_PAUSE = 0.02


class AlreadyRunning(VcjobError):
    """Another engine of this user runs."""

    def __init__(self, pid: int) -> None:
        super().__init__(
            f"an engine runs already (process {pid}); vcjob engine status shows it, "
            "vcjob engine stop ends it"
        )
        self.pid = pid


class EngineRecord(msgspec.Struct, frozen=True):
    """An engine that runs: its process, since when (seconds since 1970), and how to reach it.

    ``merged`` is the user's kubeconfig file that it was added to, or empty. ``options`` are those
    it was started with, with the Python that was found.
    """

    pid: int
    started: float
    address: str
    kubeconfig: str
    version: str
    merged: str = ""
    options: EngineOptions = EngineOptions()


class EngineHome(msgspec.Struct, frozen=True):
    """The directory of the user's engine."""

    path: Path

    @classmethod
    def of_user(cls) -> "EngineHome":
        """The one below the state directory."""
        return cls(state_root() / "engine")

    @property
    def lock(self) -> Path:
        """Held with flock by the engine that runs."""
        return self.path / "lock"

    @property
    def record(self) -> Path:
        """Where the engine that runs can be found."""
        return self.path / "engine.json"

    @property
    def kubeconfig(self) -> Path:
        """How clients reach it."""
        return self.path / "kubeconfig"

    @property
    def objects(self) -> Path:
        """The objects."""
        return self.path / "objects.sqlite"

    @property
    def logs(self) -> Path:
        """The output of containers."""
        return self.path / "logs"

    @property
    def log(self) -> Path:
        """What the engine itself has to say."""
        return self.path / "engine.log"

    def make(self) -> None:
        """Make the directories; raises StateUnusable."""
        try:
            for directory in (self.path, self.logs):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise StateUnusable(
                f"cannot use the state directory {self.path}: {error.strerror}; "
                "set XDG_STATE_HOME to a directory that you can write"
            ) from error

    def acquire(self) -> int:
        """Take the lock for this process; returns the descriptor that holds it.

        Raises AlreadyRunning, StateUnusable. A lock that a killed engine's last processes still
        hold is waited for.
        """
        self.make()
        try:
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateUnusable(f"cannot lock {self.lock}: {error.strerror}") from error
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(descriptor):
            pid = self._locked_by()
            if _is_alive(pid) or time.monotonic() > deadline:
                os.close(descriptor)
                raise AlreadyRunning(pid)
            time.sleep(_LOCK_PAUSE)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise StateUnusable(f"cannot write {self.lock}: {error.strerror}") from error
        return descriptor

    def running(self) -> int:
        """The process number of the engine that runs, 0 if none does."""
        try:
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._locked_by()
        finally:
            os.close(descriptor)
        return 0

    def read_record(self) -> EngineRecord | None:
        """What the latest engine wrote about itself; None if there is nothing to read."""
        try:
            return msgspec.json.decode(
                self.record.read_bytes(), type=EngineRecord, dec_hook=lambda kind, text: kind(text)
            )
        except (OSError, msgspec.DecodeError):
            return None

    def write_record(self, record: EngineRecord) -> None:
        """Tell where this engine can be found."""
        write_private(self.record, msgspec.json.encode(record, enc_hook=os.fspath))

    def forget(self, kubeconfig: Path) -> None:
        """Take away what is there only while an engine runs."""
        for file in (self.record, self.kubeconfig, kubeconfig):
            file.unlink(missing_ok=True)

    def _locked_by(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int(self.lock.read_text())
        return 0


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file at once or not at all, that only the user can read; raises StateUnusable."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                os.fchmod(descriptor, mode)
            beside.replace(path)
        except OSError:
            beside.unlink()
            raise
    except OSError as error:
        raise StateUnusable(f"cannot write {path}: {error.strerror}") from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        return not select.select([process], [], [], 0)[0]
    finally:
        os.close(process)
