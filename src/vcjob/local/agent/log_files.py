"""Files of containers' output, and their bounds: what stays of a log, and where."""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from vcjob.local.agent.log_times import SUFFIX, TimesWriter
from vcjob.local.sandbox.paths import checked_name

_TAIL = 4096


class LogFiles:
    """The files below one directory, private to the user, and their bounds in bytes.

    A file that passes ``file_limit`` is set aside as ``NAME.1``, in place of the one before. When
    all together pass ``total_limit``, those that were written to least recently go. A disk that
    takes no more is told to ``on_problem`` once, in a sentence; what it does not take is not kept.
    With ``clock`` (nanoseconds since 1970), times are kept too (``log_times.py``).
    """

    def __init__(
        self,
        directory: str,
        on_problem: Callable[[str], None],
        file_limit: int = 10 << 20,
        total_limit: int = 1 << 30,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.directory = directory
        self._on_problem = on_problem
        self._file_limit = file_limit
        self._total_limit = total_limit
        self._sizes: dict[str, int] = {}  # in the order of the last write
        self._total = 0
        self._told = False
        self._clock = clock
        self._times = TimesWriter()

    def path(self, namespace: str, pod: str, container: str, restart: int) -> str:
        """Where a container's output is: ``NAMESPACE_POD/CONTAINER/RESTART.log``.

        Raises UnsafePath.
        """
        pod_directory = checked_name(f"{namespace}_{pod}")
        return os.path.join(
            self.directory, pod_directory, checked_name(container), f"{restart}.log"
        )

    def take_in(self, found: Mapping[str, int]) -> None:
        """Count files of earlier engines too, as ``files_in`` gives them."""
        known = {path: max(size, found.get(path, 0)) for path, size in self._sizes.items()}
        earlier = {path: size for path, size in found.items() if path not in known}
        self._sizes = {**earlier, **known}
        self._total = sum(self._sizes.values())

    def append(self, path: str, data: bytes, writer: str = "") -> None:
        """Write to the end of a file that ``path`` gave; never raises because of the disk.

        ``writer`` tells pods apart that have the same name one after the other.
        """
        try:
            if self._sizes.get(path, 0) + len(data) > self._file_limit:
                self._set_aside(path)
            self._write(path, data, writer)
            while self._total > self._total_limit and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                for name in (oldest, oldest + SUFFIX):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name)
                self._times.forget(oldest)
                self._forget(oldest)
        except OSError as error:
            if not self._told:
                self._told = True
                self._on_problem(
                    f"output of containers is not kept in {self.directory}: {error.strerror}; "
                    "it is shown all the same"
                )

    def _set_aside(self, path: str) -> None:
        if path in self._sizes:
            aside = f"{path}.1"
            os.replace(path, aside)
            if self._clock:
                os.replace(path + SUFFIX, aside + SUFFIX)
            self._forget(aside)
            self._sizes[aside] = self._forget(path)
            self._total += self._sizes[aside]

    def _write(self, path: str, data: bytes, writer: str) -> None:
        """Opened for each write: hundreds of containers hold no descriptors for files."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            file = os.open(path, flags, 0o600)
        except FileNotFoundError:
            directory = os.path.dirname(path)
            # Each for itself: makedirs gives its mode to the last one only.
            for made in (os.path.dirname(directory), directory):
                os.makedirs(made, mode=0o700, exist_ok=True)
            file = os.open(path, flags, 0o600)
        written = noted = 0
        try:
            if self._clock:
                size = os.fstat(file).st_size
                noted = self._times.note(path, size, self._clock(), writer)
            while written < len(data):
                written += os.write(file, data[written:])
        finally:
            os.close(file)
            self._sizes[path] = self._forget(path) + written + noted
            self._total += self._sizes[path]

    def _forget(self, path: str) -> int:
        size = self._sizes.pop(path, 0)
        self._total -= size
        return size


def files_in(directory: str) -> dict[str, int]:
    """The files of output below a directory of logs, those written to first at the front.

    With their sizes and those of their indexes, in bytes. May take a while.
    """
    sizes: dict[str, int] = {}
    written: dict[str, float] = {}
    for place, _, names in os.walk(directory):
        for name in names:
            full = os.path.join(place, name)
            path = full.removesuffix(SUFFIX)
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(full)
                sizes[path] = sizes.get(path, 0) + found.st_size
                written[path] = max(written.get(path, 0.0), found.st_mtime)
    return {path: sizes[path] for path in sorted(sizes, key=written.__getitem__)}


def last_line(directory: str, namespace: str, pod: str, container: str) -> bytes:
    """The last line that a container printed in its latest run, empty if there is none."""
    logs = Path(directory) / f"{namespace}_{pod}" / container
    runs = sorted(logs.glob("*.log"), key=lambda path: int(path.stem))
    if not runs:
        return b""
    with runs[-1].open("rb") as log:
        log.seek(max(runs[-1].stat().st_size - _TAIL, 0))
        lines = log.read().splitlines()
    return lines[-1] if lines else b""
