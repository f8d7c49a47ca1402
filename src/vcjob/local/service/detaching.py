"""Starting a process that stays when the command that started it has ended."""

import contextlib
import os
import resource
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from vcjob.api.errors import VcjobError

_LARGEST_LOG = 1 << 20
_READY_SECONDS = 60.0


class Told(msgspec.Struct, frozen=True):
    """What the process says once: a sentence about its start, and an exit code (0: it is ready)."""

    code: int
    text: str


class NotStarted(VcjobError):
    """The process ended before it was ready."""


Tell = Callable[[Told], None]


def detach(work: Callable[[Tell], int], log: Path) -> Told:
    """Run ``work`` in a process of its own session, its output in ``log``; returns what it tells.

    Must be called before threads and event loops. Raises NotStarted if it ends without a word.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if not child:
        _become_detached(work, log, reader, writer)
    os.close(writer)
    os.waitpid(child, 0)  # it only starts the one that stays
    try:
        text = _read(reader)
    finally:
        os.close(reader)
    if not text:
        raise NotStarted(f"the engine ended while it started; {log} may say why")
    return msgspec.json.decode(text, type=Told)


def _read(reader: int) -> bytes:
    """All until the end of the pipe."""
    deadline = time.monotonic() + _READY_SECONDS
    text = b""
    while select.select([reader], [], [], max(deadline - time.monotonic(), 0))[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            return text
        text += part
    raise NotStarted(f"the engine was not ready within {_READY_SECONDS:.0f} seconds")


def _become_detached(work: Callable[[Tell], int], log: Path, reader: int, writer: int) -> None:
    """Run in a forked process that must never return into its caller's frames."""
    code = 1
    try:
        os.close(reader)
        os.setsid()
        if os.fork():  # the one that stays is no leader of its session: no terminal becomes its own
            os._exit(0)
        os.chdir("/")
        os.umask(0o077)
        _redirect(log)
        # Whoever started the command may wait for the end of other descriptors that it handed down.
        os.closerange(3, writer)
        os.closerange(writer + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

        def tell(told: Told) -> None:
            """Heard once: what comes later has nobody to hear it, and is in the log."""
            nonlocal writer
            if writer >= 0:
                os.write(writer, msgspec.json.encode(told))
                os.close(writer)
                writer = -1
            with contextlib.suppress(OSError):  # the disk of the log may be full
                sys.stderr.write(f"{told.text}\n")

        code = work(tell)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _redirect(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LARGEST_LOG:
        log.replace(log.with_name(f"{log.name}.1"))
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, null), (1, file), (2, file)):
        os.dup2(source, target)
    os.close(null)
    os.close(file)
