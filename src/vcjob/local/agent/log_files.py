"""Files of containers' output, and their bounds: what stays of a log, and where."""

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping

from vcjob.local.agent.log_times import SUFFIX, TimesWriter
from vcjob.local.sandbox.paths import checked_name

_TAIL = 4096

KEPT_ATTEMPTS = 10
"""Of how many pods of one name, one after another, the output stays."""


class LogFiles:
    """The files below one directory, private to the user, and their bounds in bytes.

    A file that passes ``file_limit`` is set aside as ``NAME.1``, in place of the one before. When
    all together pass ``total_limit``, those that were written to least recently go. A disk that
    takes no more is told to ``on_problem`` once, in a sentence; what it does not take is not kept.
    With ``clock`` (nanoseconds since 1970), times are kept too (``log_times.py``).

    Pods that have the same name one after the other write into the same files, unless they are to
    be kept ``apart``: then each has a directory of its own, and those of the latest few stay.
    """

    def __init__(
        self,
        directory: str,
        on_problem: Callable[[str], None],
        file_limit: int = 10 << 20,
        total_limit: int = 1 << 30,
        clock: Callable[[], int] | None = None,
        apart: bool = False,
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
        self._apart = apart
        self._latest: dict[str, tuple[int, str]] = {}  # number and UID of the pod, by directory

    def path(self, namespace: str, pod: str, container: str, restart: int, uid: str = "") -> str:
        """Where a container's output is: ``NAMESPACE_POD/CONTAINER/RESTART.log``.

        Of pods that are kept apart the second is in ``NAMESPACE_POD_2``, and so on: each time that
        another ``uid`` asks. Raises UnsafePath.
        """
        pod_directory = checked_name(f"{namespace}_{pod}")
        inside = os.path.join(checked_name(container), f"{restart}.log")
        if self._apart:
            pod_directory = self._of_attempt(pod_directory, uid)
        return os.path.join(self.directory, pod_directory, inside)

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

    def _of_attempt(self, name: str, uid: str) -> str:
        """The directory of this pod among those that had its name."""
        number, latest = self._latest.get(name, (0, ""))
        if not number or uid != latest:
            number += 1
            self._latest[name] = (number, uid)
            if number > KEPT_ATTEMPTS:
                self._remove(_numbered(name, number - KEPT_ATTEMPTS))
        return _numbered(name, number)

    def _remove(self, pod_directory: str) -> None:
        """Take away what one pod printed; what the disk does not let go stays."""
        directory = os.path.join(self.directory, pod_directory)
        for path in files_in(directory):
            self._forget(path)
        shutil.rmtree(directory, ignore_errors=True)

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


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"  # no name of a pod has a low line


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


def last_line(path: str) -> bytes:
    """The last line in a file of output, empty if there is none."""
    try:
        log = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return b""  # the container printed nothing
    with log:
        log.seek(max(os.fstat(log.fileno()).st_size - _TAIL, 0))
        lines = log.read().splitlines()
    return lines[-1] if lines else b""
