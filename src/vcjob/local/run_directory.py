"""Where this machine's engine keeps files: one directory a run, and job claims across runs.

::

    $XDG_STATE_HOME/vcjob/            0700, like everything below
        engine/                       of the engine that is a service: local/service/home.py
        runs/20261202-101500-a1b2c3/  one a run; whoever holds the lock on `lock` is running it
            lock
            logs/<namespace>_<pod>/…  stays after the run (of the latest few runs)
            objects.json              Jobs, pods and Events as they were last, also what is gone
            pods/<uid>/…              volumes and files of pods; goes with the pod
            node/                     what the node process mounts on; seen by it alone
        claims/<namespace>/<name>/    the content of a PersistentVolumeClaim

A run that was killed leaves its directory without a lock; the next run removes what it left. The
engine that is a service has such a directory too (``…-engine``), of which nothing stays.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from vcjob.api.errors import VcjobError
from vcjob.local.node.options import NODE_LOG

KEPT_RUNS = 10
"""Of how many ended runs the logs stay."""

_OF_SERVICE = "-engine"


class StateUnusable(VcjobError):
    """The state directory cannot be made or written."""


class RunDirectory(msgspec.Struct, frozen=True):
    """The directory of a run. It is locked as long as the descriptor ``lock`` is open."""

    path: Path
    lock: int

    @property
    def logs(self) -> Path:
        """Where the output of containers goes."""
        return self.path / "logs"

    @property
    def pods(self) -> Path:
        """Where the files of pods live, one directory each."""
        return self.path / "pods"

    @property
    def node(self) -> Path:
        """What the node process mounts on."""
        return self.path / "node"

    @property
    def objects(self) -> Path:
        """Where Jobs, pods and Events are left to be read."""
        return self.path / "objects.json"

    def remove_node(self) -> None:
        """Take away what an ended node process leaves, unless it had something to say.

        Raises OSError.
        """
        log = self.node / NODE_LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()
        self.node.rmdir()

    def close(self) -> None:
        """Give up the lock."""
        os.close(self.lock)


def state_root(environment: Mapping[str, str] = os.environ) -> Path:
    """The state directory: below XDG_STATE_HOME, else below ~/.local/state."""
    configured = environment.get("XDG_STATE_HOME", "")
    # Relative paths are to be ignored, says the XDG Base Directory Specification.
    base = Path(configured) if configured.startswith("/") else Path.home() / ".local/state"
    return base / "vcjob"


def open_run(root: Path, *, of_service: bool = False) -> RunDirectory:
    """Make and lock the directory of a new run; raises StateUnusable.

    That ``of_service`` is removed as a whole when it has ended.
    """
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    path = root / "runs" / f"{name}{_OF_SERVICE if of_service else ''}"
    try:
        for directory in (root, path.parent, path):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run = RunDirectory(path, lock)
        for directory in (run.logs, run.pods, run.node):
            directory.mkdir(mode=0o700)
    except OSError as error:
        raise StateUnusable(
            f"cannot use the state directory {root}: {error.strerror}; "
            "set XDG_STATE_HOME to a directory that you can write"
        ) from error
    return run


def leftovers(root: Path, kept: int = KEPT_RUNS) -> list[Path]:
    """What ended runs left that is to be removed: pods' files of all, all of the oldest ones."""
    ended = [run for run in sorted((root / "runs").iterdir()) if run.is_dir() and not _locked(run)]
    services = [run for run in ended if run.name.endswith(_OF_SERVICE)]
    ended = [run for run in ended if run not in services]
    old = ended[: max(len(ended) - kept, 0)]
    parts = [run / part for run in ended[len(old) :] for part in ("pods", "node")]
    return [*services, *old, *(part for part in parts if part.exists())]


def _locked(run: Path) -> bool:
    try:
        lock = os.open(run / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        # Not made yet, or never made: a run that starts takes the lock within moments.
        return time.time() - run.stat().st_mtime < 60
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
